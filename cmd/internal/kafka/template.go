// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// A template is a text with placeholders: {tag}, and {user.id} for a field of the record or of maps
// in it.
type template []piece

// A piece is a text, the tag, or the field at a path.
type piece struct {
	text string
	tag  bool
	path []string
}

func parseTemplate(text string) (t template, err error) {
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a '}' without its '{'")
		}
		if before != "" {
			t = append(t, piece{text: before})
		}
		if !found {
			break
		}
		name, after, found := strings.Cut(rest, "}")
		switch {
		case !found || strings.Contains(name, "{"):
			return nil, errors.New("a '{' without its '}'")
		case name == "tag":
			t = append(t, piece{tag: true})
		default:
			path := strings.Split(name, ".")
			for _, key := range path {
				if key == "" {
					return nil, fmt.Errorf("{%s} is no field", name)
				}
			}
			t = append(t, piece{path: path})
		}
		text = after
	}
	return t, nil
}

// append appends the text of the template for an event. A string is its bytes, any other value its
// JSON; a field that is missing is nothing.
func (t template) append(dst []byte, tag string, record []byte) []byte {
	for i := range t {
		switch p := &t[i]; {
		case p.tag:
			dst = append(dst, tag...)
		case p.path == nil:
			dst = append(dst, p.text...)
		default:
			dst = appendField(dst, record, p.path)
		}
	}
	return dst
}

// appendField appends the value at a path. Of keys that are there twice the last counts.
func appendField(dst, value []byte, path []string) []byte {
	for _, want := range path {
		var ok bool
		if value, ok = member(value, want); !ok {
			return dst
		}
	}
	t, n, err := msgpack.ReadToken(value)
	switch {
	case err != nil:
		return dst
	case t.Kind == msgpack.Str || t.Kind == msgpack.Bin:
		return append(dst, value[n:min(n+t.Len, len(value))]...)
	}
	out, _, err := msgpack.AppendJSON(dst, value, forward.AppendExtJSON)
	if err != nil {
		return dst
	}
	return out
}

// member finds the value of a key in a map.
func member(b []byte, want string) (value []byte, ok bool) {
	t, n, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.Map {
		return nil, false
	}
	b = b[n:]
	for range t.Len {
		key, n, err := msgpack.ReadToken(b)
		if err != nil {
			return nil, false
		}
		is := key.Kind == msgpack.Str && key.Len == len(want) && len(b) >= n+key.Len && string(b[n:n+key.Len]) == want
		if n, err = msgpack.Skip(b); err != nil {
			return nil, false
		}
		b = b[n:]
		if n, err = msgpack.Skip(b); err != nil {
			return nil, false
		}
		if is {
			value, ok = b[:n], true
		}
		b = b[n:]
	}
	return value, ok
}
