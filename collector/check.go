// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/internal/urls"
)

// Check says what is wrong with a configuration, as far as that shows without a look at this
// machine: nothing is opened, made or started, but the files of lookups are read. What is wrong
// with an end is an *EndError, and with a route a *RouteError; all of these are there, joined.
func (c *Config) Check() error {
	next, err := c.withDefaults()
	if err != nil {
		return err
	}
	_, err = next.plan(nil)
	return err
}

// plans are all ends and routes of a configuration.
type plans struct {
	inputs  []inputPlan
	outputs []plannedOutput
	routes  *step.Routes // nil: there are none
}

// plan understands a configuration with its defaults filled in, which takes the place of one with
// these routes, or of none.
func (c *Config) plan(before *step.Routes) (p plans, err error) {
	var inputErr, outputErr, routeErr error
	p.inputs, inputErr = planInputs(c)
	p.outputs, outputErr = planOutputs(c)
	p.routes, routeErr = planRoutes(c, p.outputs, before)
	return p, errors.Join(inputErr, outputErr, routeErr)
}

// An EndError is what is wrong with one end.
type EndError struct {
	Side string // "input" or "output"
	End  End
	Err  error
}

// Error is the text of Err, which names the URL.
func (e *EndError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *EndError) Unwrap() error { return e.Err }

// Parameter is a parameter that URLs of some scheme may have.
type Parameter = urls.Parameter

// InputParameters returns the schemes that an input may have, each with the parameters of its URLs:
// those that are asked for when such a URL is read.
func (c *Config) InputParameters() map[string][]Parameter {
	table := map[string][]Parameter{}
	read := func(u *URL) { _, _ = c.planInputURL(u, &End{Name: "x"}) } // of interest is what it asks for
	for _, scheme := range inputSchemes {
		table[scheme] = parameters(read, nil, urls.Schemes()[scheme])
	}
	for scheme := range c.InputKinds {
		table[scheme] = foreignParameters(read, scheme)
	}
	return table
}

// OutputParameters is InputParameters for outputs.
func (c *Config) OutputParameters() map[string][]Parameter {
	table := map[string][]Parameter{}
	with := *c
	with.Stdout = io.Discard // or there would be no output stdout:
	read := func(u *URL) { _, _ = with.planOutputURL(u, &End{Name: "x"}) }
	for _, scheme := range outputSchemes {
		table[scheme] = parameters(read, nil, urls.Schemes()[scheme])
	}
	for scheme := range c.OutputKinds {
		table[scheme] = foreignParameters(read, scheme)
	}
	return table
}

// foreignParameters are those of an end of another package. What has to stand behind the colon is
// not known, and a URL that is wrong there may be asked for nothing.
func foreignParameters(read func(*URL), scheme string) []Parameter {
	return parameters(read, []string{scheme}, scheme+"://x:1/x", scheme+":///x", scheme+"://x:1")
}

// parameters reads URLs, also with each of the choices that a parameter has: some parameters are
// asked for only beside others.
func parameters(read func(*URL), others []string, examples ...string) []Parameter {
	known := map[string]Parameter{}
	ask := func(query string) {
		for _, text := range examples {
			u, err := urls.Parse(text+query, others...)
			if err != nil {
				continue
			}
			read(u)
			for _, p := range u.Known() {
				// What is asked for twice is once asked for as what it is.
				if old, ok := known[p.Name]; !ok || old.Takes == urls.TakesText {
					known[p.Name] = p
				}
			}
		}
	}
	ask("")
	for _, p := range slices.Collect(maps.Values(known)) {
		for _, choice := range p.Choices {
			ask("?" + p.Name + "=" + choice)
		}
	}
	list := slices.Collect(maps.Values(known))
	slices.SortFunc(list, func(a, b Parameter) int { return strings.Compare(a.Name, b.Name) })
	return list
}
