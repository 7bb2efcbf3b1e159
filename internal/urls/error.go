// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"fmt"
	"strconv"
)

// Error says what is wrong with a URL.
type Error struct {
	URL     string // as it was written, without secrets
	Reason  string
	Example string // a URL that is right, or empty

	Parameter string // that is wrong, where it is one
}

// Error names the URL, the reason and the example.
func (e *Error) Error() string {
	s := e.URL + ": " + e.Reason
	if e.URL == "" {
		s = "empty URL: " + e.Reason
	}
	if e.Example != "" {
		s += "; for example " + e.Example
	}
	return s
}

// Errorf makes an error about u, for what only the caller can find wrong with it.
func (u *URL) Errorf(format string, args ...any) *Error {
	return &Error{URL: u.text, Reason: fmt.Sprintf(format, args...)}
}

// ErrorAbout is Errorf about a parameter that does not belong there: its value is left out, for it
// may be a secret that was given the wrong name.
func (u *URL) ErrorAbout(name, format string, args ...any) *Error {
	e := u.Errorf(format, args...)
	e.URL, e.Parameter = hideValues(e.URL, func(other string) bool { return other == name }), name
	return e
}

// quote shows a piece of a URL, shortened.
func quote(s string) string { return strconv.Quote(cut(s, 64)) }
