// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Route says which events go to which outputs, and what becomes of them on the way. Routes stand
// in a list: an event takes the first one that matches its tag, and those behind it only if that
// one says Continue. An output gets an event once at most, by the first of these routes that leads
// to it.
type Route struct {
	Match    string   `help:"Pattern of tags: * is one part or some of it, ** any parts, {a,b} one of these." required:"true"`
	Do       []Step   `help:"Steps, in their order."`
	To       []string `help:"Names of outputs; none: such events go nowhere."`
	Continue bool     `help:"Whether the routes behind this one count, too."`
	OnError  string   `help:"What becomes of an event of which a step fails." enum:"field,letter"`
}

// What Route.OnError may be. Of an event of which mask, remove, hash, redact, keep, drop,
// sample, throttle or dedup fails it is OnErrorLetter, whatever the route says.
const (
	OnErrorField  = "field"  // it goes on, without that step, and has the field ErrorField
	OnErrorLetter = "letter" // it is a dead letter, as it was before all steps
)

// An Error is what is wrong with a route.
type Error struct {
	Path   []any  // which route, and keys and indices in it: 1, "do", 0, "drop"
	At     int    // at which byte of the text there; -1: at all of it
	Output string // that it is about, if it is about no route
	Text   string
}

// Error says where.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("routes")
	for _, key := range e.Path {
		if i, ok := key.(int); ok {
			fmt.Fprintf(&b, "[%d]", i)
		} else {
			fmt.Fprintf(&b, ".%v", key)
		}
	}
	return b.String() + ": " + e.Text
}

// Routes are routes that were understood.
type Routes struct {
	routes   []Route
	globs    []glob
	maxBytes int

	compile Compiler

	tables map[tableOf]*table // of lookups
	before *Routes            // while they are read: those that they follow
}

// Read understands routes. outputs are the names of those that there are, maxBytes is how large
// steps may make an event, compile is what compiles expressions; without it there are none. The
// error is all that is wrong, joined, each an *Error.
func Read(routes []Route, outputs []string, maxBytes int64, compile Compiler) (*Routes, error) {
	return ReadAfter(nil, routes, outputs, maxBytes, compile)
}

// ReadAfter is Read of routes that take the place of others. A table that both have is one, and has
// what its file has now.
func ReadAfter(before *Routes, routes []Route, outputs []string, maxBytes int64, compile Compiler) (*Routes, error) {
	r := &Routes{
		routes: routes, maxBytes: int(min(maxBytes, 1<<30)), compile: compile,
		tables: map[tableOf]*table{}, before: before,
	}
	defer func() { r.before = nil }()
	var errs []error
	last := len(routes)
	for i := range routes {
		errs = append(errs, r.read(i, outputs)...)
		if i > last {
			errs = append(errs, &Error{
				Path: []any{i, "match"}, At: -1,
				Text: fmt.Sprintf("no event comes here: routes[%d] matches all, and does not say continue", last),
			})
		} else if routes[i].Match == "**" && !routes[i].Continue {
			last = i
		}
	}
	for _, name := range outputs {
		if name != "" && len(routes) > 0 && !slices.ContainsFunc(routes,
			func(o Route) bool { return slices.Contains(o.To, name) }) {
			errs = append(errs, &Error{
				At: -1, Output: name,
				Text: fmt.Sprintf("no route leads to the output %s", name),
			})
		}
		if keys := keysFor(routes, name); keys > maxKeysOfAll {
			errs = append(errs, &Error{
				At: -1, Output: name,
				Text: fmt.Sprintf("the steps for the output %s know %d keys; all together may know %d", name, keys,
					maxKeysOfAll),
			})
		}
	}
	return r, errors.Join(errs...)
}

func (r *Routes) read(i int, outputs []string) (errs []error) {
	route := &r.routes[i]
	fail := func(at int, text string, key ...any) {
		errs = append(errs, &Error{Path: append([]any{i}, key...), At: at, Text: text})
	}
	g, err := parseGlob(route.Match)
	if err != nil {
		fail(-1, err.Error(), "match")
	}
	r.globs = append(r.globs, g)
	for j := range route.Do {
		newAction(&route.Do[j], r, func(key []any, at int,
			text string,
		) {
			fail(at, text, append([]any{"do", j}, key...)...)
		})
	}
	for j, name := range route.To {
		switch {
		case !slices.Contains(outputs, name) || name == "":
			fail(-1, fmt.Sprintf("there is no output %q", name), "to", j)
		case slices.Contains(route.To[:j], name):
			fail(-1, fmt.Sprintf("%s is named twice", name), "to", j)
		}
	}
	if o := route.OnError; o != "" && o != OnErrorField && o != OnErrorLetter {
		fail(-1, fmt.Sprintf("on_error is %s or %s, not %q", OnErrorField, OnErrorLetter, o), "on_error")
	}
	return errs
}

// For returns what an output gets; nil: everything, as it is.
func (r *Routes) For(output string) *Sifter {
	if len(r.routes) == 0 {
		return nil
	}
	s := &Sifter{shares: map[string]*program{}}
	mark, whole := sha256.New(), sha256.New()
	var elsewhere []int // routes that end, which count only if one that leads here comes behind them
	for i := range r.routes {
		route := &r.routes[i]
		if !slices.Contains(route.To, output) {
			if !route.Continue {
				elsewhere = append(elsewhere, i)
			}
			continue
		}
		for _, k := range elsewhere {
			fmt.Fprintf(whole, "%q\n", r.routes[k].Match)
			s.rules = append(s.rules, rule{r.globs[k], nil})
		}
		elsewhere = nil
		here := rule{r.globs[i], everything}
		if len(s.rules) == 0 && route.Match == "**" && len(route.Do) == 0 {
			return nil
		}
		fmt.Fprintf(whole, "%q here\n", route.Match)
		if len(route.Do) > 0 {
			here.program = r.program(route)
			s.remember(route, here.program)
			fmt.Fprintf(io.MultiWriter(mark, whole), "%q %t %d %x\n", route.Match, here.program.letters, r.maxBytes,
				spelled(route.Do))
			s.steps = true
			s.retags = s.retags || slices.ContainsFunc(route.Do, func(s Step) bool { return s.Tag != "" })
		}
		s.rules = append(s.rules, here)
	}
	mark.Sum(s.steady[:0])
	whole.Sum(s.whole[:0])
	s.remark()
	return s
}

// remember takes note of the steps of a route that go by more than the event. What a step remembers
// is known by the step, its place among such ones, and the route's pattern: whatever else changes,
// it is the same.
func (s *Sifter) remember(route *Route, p *program) {
	for i := range p.actions {
		if l := p.actions[i].lookup; l != nil {
			s.lookups = append(s.lookups, l)
		}
		m := p.actions[i].memory
		if m == nil {
			continue
		}
		for n := 0; ; n++ {
			sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %x", route.Match, n, spelled(route.Do[i:i+1])))
			copy(m.id[:], sum[:])
			if !slices.ContainsFunc(s.memories, func(other *memory) bool { return other.id == m.id }) {
				break
			}
		}
		s.memories = append(s.memories, m)
	}
}

// keysFor is how many keys the steps for an output know at most.
func keysFor(routes []Route, output string) (keys int64) {
	for i := range routes {
		if !slices.Contains(routes[i].To, output) {
			continue
		}
		for j := range routes[i].Do {
			switch s := &routes[i].Do[j]; {
			case s.Throttle != nil:
				keys += cmp.Or(s.Throttle.Keys, usualKeys)
			case s.Dedup != nil:
				keys += cmp.Or(s.Dedup.Keys, usualKeys)
			}
		}
	}
	return keys
}

// program makes the steps of a route anew: each output has its own.
func (r *Routes) program(route *Route) *program {
	p := &program{letters: route.OnError == OnErrorLetter, maxBytes: r.maxBytes, skip: make([]bool, len(route.Do))}
	for j := range route.Do {
		// Read has told of mistakes.
		p.actions = append(p.actions, newAction(&route.Do[j], r, func([]any, int, string) {}))
	}
	return p
}

// table returns the one that a step looks up in. Read has its file read, once.
func (r *Routes) table(of tableOf) (*table, error) {
	if t := r.tables[of]; t != nil {
		return t, nil
	}
	t := r.before.tableOf(of)
	if t == nil {
		t = &table{of: of}
	}
	if err := t.load(); err != nil {
		return nil, err
	}
	r.tables[of] = t
	return t, nil
}

func (r *Routes) tableOf(of tableOf) *table {
	if r == nil {
		return nil
	}
	return r.tables[of]
}

// Refresh reads the tables of lookups whose files have changed. Of one that cannot be read the old
// rows stay, and the error says why, once. It may be called while Sifters work.
func (r *Routes) Refresh() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, t := range r.tables {
		errs = append(errs, t.refresh())
	}
	return errors.Join(errs...)
}
