// SPDX-License-Identifier: Apache-2.0

package urls

import (
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// URL names an input or a destination.
type URL struct {
	Scheme string // in small letters: "forward", "forward+tls", "forward+unix", "file", "stdout", "stderr", "discard"
	// Host:port each, as net.Dial takes them; the host may be empty (":24224"); nil for schemes
	// without hosts.
	Hosts []string
	Path  string // decoded; empty for schemes without a path

	query []parameter
	known []Parameter // that were asked for
	text  string      // as written, without secrets
}

// String returns the URL as it was written, with its secrets left out.
func (u *URL) String() string { return u.text }

// maxSocket is the longest path of a unix socket on Linux, its terminating NUL not counted.
const maxSocket = 107

// Parse reads a URL. others are further schemes: of theirs, Path is all that stands between the
// colon and the parameters, as it is written. Every error is an *Error.
func Parse(text string, others ...string) (*URL, error) {
	return ParseAmong(text, known(), others...)
}

// ParseAmong is Parse, but an error about the scheme offers only these of this package, and the
// others.
func ParseAmong(text string, offered []string, others ...string) (*URL, error) {
	shown := hideSecrets(text)
	scheme, rest, colon := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	s, known := shapeOf(scheme)
	if colon && slices.Contains(others, scheme) {
		s, known = shape{scheme: scheme, kind: anything}, true
	}
	if !known || !colon {
		return nil, unknown(text, shown, slices.Concat(offered, others))
	}
	fail := func(reason string) (*URL, error) {
		return nil, &Error{URL: shown, Reason: reason, Example: s.example}
	}
	if hasUser(text) {
		return fail(atSign)
	}
	if reason := badByte(text); reason != "" {
		return fail(reason)
	}
	rest, query, _ := strings.Cut(rest, "?")
	parameters, reason := parseQuery(query)
	if reason != "" {
		return fail(reason)
	}
	u := &URL{Scheme: s.scheme, query: parameters, text: shown}
	switch s.kind {
	case nothing:
		if rest != "" && rest != "//" {
			return fail("nothing may follow " + s.scheme + ":")
		}
	case hosts:
		reason = u.parseHosts(rest, s)
	case path:
		reason = u.parsePath(rest, s)
	case anything:
		u.Path = rest
	}
	if reason != "" {
		return fail(reason)
	}
	return u, nil
}

// badByte says what in text cannot be in any URL.
func badByte(text string) string {
	for i := range len(text) {
		switch c := text[i]; {
		case c == '#':
			return "\"#\" begins a fragment, which has no meaning here; one in a name is written %23"
		case c == ' ':
			return "a space is written %20"
		case c < ' ' || c == 0x7f:
			return "there is a control character in it"
		}
	}
	if !utf8.ValidString(text) {
		return "it is not UTF-8 text"
	}
	return ""
}

// parsePath reads what stands behind the colon of a scheme with a path.
func (u *URL) parsePath(rest string, s shape) (reason string) {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		host, p, slash := strings.Cut(after, "/")
		if host != "" && host != "localhost" {
			return "behind two slashes stands a host, and " + quote(host) +
				" is none: a path from the root has three slashes (" +
				s.scheme + ":///" + after + "), one from the working directory has none (" + s.scheme + ":" + after +
				")"
		}
		if !slash {
			return "the path is missing"
		}
		rest = "/" + p
	}
	p, reason := decode(rest)
	switch {
	case reason != "":
		return reason
	case p == "":
		return "the path is missing"
	case strings.HasSuffix(p, "/"):
		return "this is a directory; the name of the file is missing"
	case s.socket && len(p) > maxSocket:
		return "the path of a unix socket is at most 107 bytes long"
	}
	if runtime.GOOS == "windows" && len(p) >= 3 && p[0] == '/' && p[2] == ':' {
		p = p[1:] // file:///C:/logs
	}
	u.Path = p
	return ""
}

// decode resolves %-encoding.
func decode(s string) (text, reason string) {
	if !strings.Contains(s, "%") {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		hi, lo := -1, -1
		if i+2 < len(s) {
			hi, lo = hexDigit(s[i+1]), hexDigit(s[i+2])
		}
		if hi < 0 || lo < 0 {
			return "", quote(cut(s[i:], 3)) + " is no %-encoding: a percent sign is written %25" +
				" (the date and hour of an event are {date} and {hour})"
		}
		c := byte(hi<<4 | lo)
		if c < ' ' || c == 0x7f {
			return "", quote(s[i:i+3]) + " is a control character"
		}
		b.WriteByte(c)
		i += 2
	}
	if !utf8.ValidString(b.String()) {
		return "", "what its %-encoding stands for is not UTF-8 text: a percent sign is written %25" +
			" (the date and hour of an event are {date} and {hour})"
	}
	return b.String(), ""
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// cut returns at most the first n characters of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
