// SPDX-License-Identifier: Apache-2.0

package urls

import "slices"

// A Parameter is one that some URL may have: what a caller asked for.
type Parameter struct {
	Name      string
	Takes     Takes
	Choices   []string // of a Choice
	Low, High int64    // of an Int
	Repeated  bool     // it may be given several times
}

// Takes is what the value of a parameter has to be.
type Takes uint8

// What a parameter takes.
const (
	TakesText Takes = iota
	TakesChoice
	TakesBool
	TakesInt
	TakesSize
	TakesDuration
)

// Known returns the parameters that the URL was asked for so far, whether it has them or not. What
// a scheme takes is known after its URL was read; so no list of it stands anywhere else.
func (u *URL) Known() []Parameter {
	known := slices.Clone(u.known)
	if s, _ := shapeOf(u.Scheme); s.kind == hosts {
		known = append(known, Parameter{Name: hostName, Repeated: true})
	}
	return known
}

// Schemes returns the schemes of this package, each with a URL that is right.
func Schemes() map[string]string {
	examples := make(map[string]string, len(shapes))
	for _, s := range shapes {
		examples[s.scheme] = s.example
	}
	return examples
}

// Show returns a text that may be a URL as it can be shown: without secrets.
func Show(text string) string { return hideSecrets(text) }

// Secret reports whether a parameter of that name holds a secret, whose value is never shown.
func Secret(name string) bool { return secretName(name) }
