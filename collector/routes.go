// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/step"
)

// A Route says which events go to which outputs, and what becomes of them on the way. Routes run
// behind the journal: no ack waits for one, and the journal has what came.
type Route = step.Route

// A Step is one change of an event: one of its fields is set.
type Step = step.Step

// Names are fields and other fields, of a [Step].
type Names = step.Names

// Values are fields and constants, of a [Step].
type Values = step.Values

// A RouteError is what is wrong with a route, and where.
type RouteError = step.Error

// planRoutes says of each plan what the output gets. The routes take the place of others, or of
// nil.
func planRoutes(c *Config, plans []plan, before *step.Routes) (*step.Routes, error) {
	if len(c.Routes) == 0 {
		return nil, nil
	}
	var names []string
	var errs []error
	for i := range c.Outputs {
		e := &c.Outputs[i]
		if names = append(names, e.Name); e.Name == "" {
			url, _, _ := strings.Cut(e.URL, "?") // settings may be secret
			errs = append(errs, &RouteError{At: -1, Text: fmt.Sprintf("routes lead to outputs by their names, and %s has none", url)})
		}
	}
	routes, err := step.ReadAfter(before, c.Routes, names, 2*c.MaxEvent) // some room for what steps add
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	for i := range plans {
		p := &plans[i]
		if p.sifter = routes.For(p.name); p.sifter != nil && p.sifter.Steps() {
			p.opaque = false
			p.wants |= wantEntries
		}
	}
	return routes, nil
}

// tablesEvery is how often the files of lookups are looked at.
const tablesEvery = 5 * time.Second

// watchTables has lookups go by what is in their files until ctx is done.
func (c *Collector) watchTables(ctx context.Context) {
	tick := time.NewTicker(tablesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.routes.Load().Refresh(); err != nil {
				c.reporter.trouble("routes", err)
			}
		}
	}
}
