// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A parameter is one name=value of the query, decoded, in the order written.
type parameter struct{ name, value string }

func parseQuery(query string) (list []parameter, reason string) {
	if query == "" {
		return nil, ""
	}
	for item := range strings.SplitSeq(query, "&") {
		if item == "" {
			continue
		}
		name, value, _ := strings.Cut(item, "=")
		name, reason := decode(name)
		if reason == "" && name == "" {
			reason = "a parameter has no name"
		}
		// As where a variable of the shell is not set: what was asked for must not quietly be left
		// out.
		if reason == "" && value == "" {
			reason = "parameter " + quote(name) + " has no value; it is written " + name + "=…"
		}
		if reason != "" {
			return nil, reason
		}
		value, reason = decode(value)
		if reason != "" {
			if secretName(name) {
				reason = "its %-encoding is broken: a percent sign is written %25" // do not quote it
			}
			return nil, "parameter " + quote(name) + ": " + reason
		}
		list = append(list, parameter{name, value})
	}
	return list, ""
}

// Allow returns an error when the URL has a parameter that is not among names. It is for callers
// that take no settings; others ask with Params, which knows by itself what is allowed.
func (u *URL) Allow(names ...string) error {
	for _, q := range u.query {
		if slices.Contains(names, q.name) {
			continue
		}
		takes := "none"
		if len(names) > 0 {
			takes = strings.Join(names, ", ")
		}
		e := u.Errorf("unknown parameter %q; %s takes %s", q.name, u.Scheme, takes)
		e.Parameter = q.name
		e.URL = hideValues(e.URL, func(name string) bool { return !slices.Contains(names, name) })
		return e
	}
	return nil
}

// Has reports whether a parameter is given.
func (u *URL) Has(name string) bool {
	return slices.ContainsFunc(u.query, func(q parameter) bool { return q.name == name })
}

// Params reads the parameters of one URL: what it is asked for is what is allowed. The first error
// is kept for Err, so that callers ask for everything first; a value in error is the default.
type Params struct {
	url   *URL
	asked []string
	err   error
}

// Params begins to read the parameters.
func (u *URL) Params() *Params { return &Params{url: u} }

// Err returns the first error: a value that cannot be understood, a parameter given twice, or one
// nobody asked for.
func (p *Params) Err() error {
	if err := p.url.Allow(p.asked...); err != nil {
		return err
	}
	return p.err
}

// Strings returns every value of a parameter that may be repeated.
func (p *Params) Strings(name string) []string { return p.ask(Parameter{Name: name, Repeated: true}) }

// ask returns the values of a parameter, and keeps that it is known.
func (p *Params) ask(known Parameter) []string {
	name := known.Name
	p.asked = append(p.asked, name)
	p.url.known = append(p.url.known, known)
	var values []string
	for _, q := range p.url.query {
		if q.name == name {
			values = append(values, q.value)
		}
	}
	return values
}

// one returns the value of a parameter that may not be repeated.
func (p *Params) one(known Parameter) (value string, ok bool) {
	values := p.ask(known)
	if len(values) > 1 {
		p.fail(known.Name, "parameter %q is given twice", known.Name)
	}
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

func (p *Params) fail(name, format string, args ...any) {
	if p.err == nil {
		e := p.url.Errorf(format, args...)
		e.Parameter = name
		p.err = e
	}
}

// wrong keeps the error of a value that is not what it should be.
func (p *Params) wrong(name, value, want string) {
	if secretName(name) {
		p.fail(name, "parameter %q: its value is not %s", name, want)
		return
	}
	p.fail(name, "parameter %q: %q is not %s", name, value, want)
}

// String returns a text.
func (p *Params) String(name, otherwise string) string {
	if v, ok := p.one(Parameter{Name: name}); ok {
		return v
	}
	return otherwise
}

// Choice returns one of the choices, the first of them when the parameter is absent.
func (p *Params) Choice(name string, choices ...string) string {
	v, ok := p.one(Parameter{Name: name, Takes: TakesChoice, Choices: choices})
	if !ok {
		return choices[0]
	}
	if !slices.Contains(choices, v) {
		p.wrong(name, v, "one of "+strings.Join(choices, ", "))
		return choices[0]
	}
	return v
}

// Bool returns true or false.
func (p *Params) Bool(name string, otherwise bool) bool {
	v, ok := p.one(Parameter{Name: name, Takes: TakesBool})
	if !ok {
		return otherwise
	}
	if v != "true" && v != "false" {
		p.wrong(name, v, "true or false")
		return otherwise
	}
	return v == "true"
}

// Int returns a number between low and high, both included.
func (p *Params) Int(name string, otherwise, low, high int64) int64 {
	v, ok := p.one(Parameter{Name: name, Takes: TakesInt, Low: low, High: high})
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < low || n > high {
		p.wrong(name, v, "a number from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
		return otherwise
	}
	return n
}

// Size returns a number of bytes; see ParseSize.
func (p *Params) Size(name string, otherwise int64) int64 {
	v, ok := p.one(Parameter{Name: name, Takes: TakesSize})
	if !ok {
		return otherwise
	}
	n, err := ParseSize(v)
	if err != nil {
		p.wrong(name, v, "a size such as 64MiB")
		return otherwise
	}
	return n
}

// Duration returns a time span that is not negative, as time.ParseDuration reads it.
func (p *Params) Duration(name string, otherwise time.Duration) time.Duration {
	v, ok := p.one(Parameter{Name: name, Takes: TakesDuration})
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		p.wrong(name, v, "a duration such as 10s, 500ms or 1m30s")
		return otherwise
	}
	return d
}
