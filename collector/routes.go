// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// planRoutes says of each plan what the output gets.
func planRoutes(c *Config, plans []plan) error {
	if len(c.Routes) == 0 {
		return nil
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
	routes, err := step.Read(c.Routes, names, 2*c.MaxEvent) // some room for what steps add
	if err = errors.Join(append(errs, err)...); err != nil {
		return err
	}
	for i := range plans {
		p := &plans[i]
		p.part = partOf(c.Routes, p.name)
		if p.sifter = routes.For(p.name); p.sifter != nil && p.sifter.Steps() {
			p.opaque = false
			p.wants |= wantEntries
		}
	}
	return nil
}

// partOf is what of the routes says what an output gets: those up to the last one that leads to it.
// Of one that leads elsewhere it matters only which events go no further.
func partOf(routes []Route, output string) (part []Route) {
	last := 0
	for i := range routes {
		r := Route{Match: routes[i].Match, Continue: routes[i].Continue}
		if slices.Contains(routes[i].To, output) {
			r.Do, r.OnError, r.To = routes[i].Do, routes[i].OnError, []string{output}
			last = i + 1
		}
		part = append(part, r)
	}
	return part[:last]
}
