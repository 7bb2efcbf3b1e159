// SPDX-License-Identifier: Apache-2.0

package urls

import "strings"

// A shape is what stands behind the colon of a scheme.
type shape struct {
	scheme  string
	kind    kind
	port    string // of a host without one
	socket  bool   // the path is a unix socket's
	example string
}

type kind uint8

const (
	nothing kind = iota
	hosts
	path
	anything
)

// shapes lists every scheme.
var shapes = []shape{
	{scheme: "forward", kind: hosts, port: "24224", example: "forward://127.0.0.1:24224"},
	{scheme: "forward+tls", kind: hosts, port: "24224", example: "forward+tls://logs.example:24224"},
	{scheme: "forward+unix", kind: path, socket: true, example: "forward+unix:///run/spillway.sock"},
	{scheme: "lines", kind: hosts, port: "5170", example: "lines://127.0.0.1:5170"},
	{scheme: "lines+unix", kind: path, socket: true, example: "lines+unix:///run/lines.sock"},
	{scheme: "stdin", kind: nothing, example: "stdin:"},
	{scheme: "ring", kind: path, example: "ring:///dev/shm"},
	{scheme: "file", kind: path, example: "file:///var/log/{tag}.{date}.jsonl"},
	{scheme: "stdout", kind: nothing, example: "stdout:"},
	{scheme: "stderr", kind: nothing, example: "stderr:"},
	{scheme: "discard", kind: nothing, example: "discard:"},
}

func shapeOf(scheme string) (shape, bool) {
	for _, s := range shapes {
		if s.scheme == scheme {
			return s, true
		}
	}
	return shape{}, false
}

// known are the names of all of them.
func known() []string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = s.scheme
	}
	return names
}

// unknown explains a text that begins with no known scheme, and guesses what was meant.
func unknown(text, shown string, names []string) *Error {
	e := &Error{URL: shown, Example: shapes[0].example}
	scheme, rest, colon := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	_, known := shapeOf(scheme)
	switch {
	case text == "":
	case known && !colon:
		e.Reason, e.Example = "a colon is missing behind "+scheme, ""
		if s, _ := shapeOf(scheme); s.kind == nothing {
			e.Example = s.example
		}
		return e
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "."):
		e.Reason, e.Example = "this is a path; a file is named by a URL", "file:"+shown
		return e
	case len(scheme) == 1 && isName(scheme) && colon:
		e.Reason, e.Example = "this is a path; a file is named by a URL", "file:///C:/logs/{tag}.jsonl"
		return e
	case strings.HasPrefix(text, "[") || colon && rest != "" && strings.Trim(rest, "0123456789") == "":
		e.Reason, e.Example = "this is an address; the scheme is missing", "forward://"+shown
		return e
	}
	e.Reason = "the scheme is missing; known are " + strings.Join(names, ", ")
	if colon && isName(scheme) {
		e.Reason = "no scheme " + quote(scheme) + "; known are " + strings.Join(names, ", ")
	}
	return e
}

// isName reports whether s is letters, digits, plus, minus and dot, and begins with a letter.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i] | 0x20; {
		case 'a' <= c && c <= 'z':
		case i > 0 && ('0' <= s[i] && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.'):
		default:
			return false
		}
	}
	return s != ""
}
