// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
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

// Parts of a [Step] that are more than a list of fields; docs/steps.md says what each does.
type (
	// Value is a field and a constant.
	Value = step.Value
	// Hash makes of values what tells equal ones from others, and nothing else of them.
	Hash = step.Hash
	// Redact takes what looks like a secret out of texts.
	Redact = step.Redact
	// Parse makes fields, or the time of the event, of a text.
	Parse = step.Parse
	// Flatten makes fields of what is in maps.
	Flatten = step.Flatten
	// Nest moves fields into a map.
	Nest = step.Nest
	// Sample keeps a share of the events.
	Sample = step.Sample
	// Throttle lets so many events of a key pass in each span of time.
	Throttle = step.Throttle
	// Dedup lets an event pass once.
	Dedup = step.Dedup
	// Lookup finds a row of a table by a field, and makes fields of its columns.
	Lookup = step.Lookup
)

// An Expression is a part of a condition that is more than comparisons with constants, compiled.
type Expression = step.Expression

// An ExpressionError is a mistake in the text of one, and where.
type ExpressionError = step.Fault

// A RouteError is what is wrong with a route, and where.
type RouteError = step.Error

// planRoutes says of each plan what the output gets. The routes take the place of others, or of
// nil.
func planRoutes(c *Config, plans []plannedOutput, before *step.Routes) (*step.Routes, error) {
	if len(c.Routes) == 0 {
		return nil, nil
	}
	var names []string
	var errs []error
	for i := range c.Outputs {
		e := &c.Outputs[i]
		if names = append(names, e.Name); e.Name == "" {
			url, _, _ := strings.Cut(e.URL, "?") // settings may be secret
			errs = append(errs, &RouteError{
				At:   -1,
				Text: fmt.Sprintf("routes lead to outputs by their names, and %s has none", url),
			})
		}
	}
	routes, err := step.ReadAfter(before, c.Routes, names, 2*c.MaxEvent, c.Expressions) // some room for what steps add
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	for i := range plans {
		p := &plans[i]
		p.sifter = routes.For(p.name)
		if p.whole && p.sifter != nil && p.sifter.Retags() {
			errs = append(errs, c.retagged(p.name)...)
		}
		if p.sifter != nil && p.sifter.Steps() {
			p.opaque = false
			p.wants |= wantEntries
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return routes, nil
}

// retagged are the steps that give events to an output a new tag, which it cannot take.
func (c *Config) retagged(output string) (errs []error) {
	for i := range c.Routes {
		r := &c.Routes[i]
		for j := range r.Do {
			if r.Do[j].Tag != "" && slices.Contains(r.To, output) {
				errs = append(errs, &RouteError{
					Path: []any{i, "do", j, "tag"}, At: -1,
					Text: fmt.Sprintf("the output %s keeps its position itself (exactly once), and takes records of the journal whole: there are no new tags for it", output),
				})
			}
		}
	}
	return errs
}

// tablesEvery is how often the files of lookups are looked at.
const tablesEvery = 5 * time.Second

// watchTables has lookups go by what is in their files until ctx is done.
func watchTables(ctx context.Context, routes *atomic.Pointer[step.Routes], r *reporter) {
	tick := time.NewTicker(tablesEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := routes.Load().Refresh(); err != nil {
				r.report(codes.LookupTable, "lookup table", err)
			}
		}
	}
}
