// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/msgpack"
)

// A template is a text with placeholders: {tag}, {tag[0]} for a part of it, and {user.id} for a
// field of the record or of maps in it. What stands behind a | is for where there is nothing.
//
// There are two more parsers of placeholders: internal/step/template.go has the same ones for
// steps, internal/files/pattern.go those of paths. {host} is the field host in these two templates,
// and in a path the name of the machine that writes the file.
type template []piece

// A piece is a text, the tag or a part of it, or the field at a path.
type piece struct {
	text      string
	tag       bool
	part      int // of the tag, from 1; 0: all of it
	path      []string
	otherwise string
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
		if !found || strings.Contains(name, "{") {
			return nil, errors.New("a '{' without its '}'")
		}
		p, err := parsePlaceholder(name)
		if err != nil {
			return nil, err
		}
		t = append(t, p)
		text = after
	}
	return t, nil
}

func parsePlaceholder(text string) (p piece, err error) {
	name, otherwise, _ := strings.Cut(text, "|")
	p.otherwise = otherwise
	if name == "tag" {
		p.tag = true
		return p, nil
	}
	if number, ok := strings.CutPrefix(name, "tag["); ok {
		number, closed := strings.CutSuffix(number, "]")
		n, err := strconv.ParseUint(number, 10, 8)
		if !closed || err != nil {
			return p, fmt.Errorf("{%s} is no part of the tag; {tag[0]} is the first one", name)
		}
		p.tag, p.part = true, int(n)+1
		return p, nil
	}
	for key := range strings.SplitSeq(name, ".") {
		if key == "" {
			return p, fmt.Errorf("{%s} is no field", name)
		}
		p.path = append(p.path, key)
	}
	return p, nil
}

// varies says whether the text is not the same for all events.
func (t template) varies() bool {
	for i := range t {
		if t[i].tag || t[i].path != nil {
			return true
		}
	}
	return false
}

// append appends the text of the template for an event. A string is its bytes, any other value its
// JSON; a field that is missing or nil is nothing.
func (t template) append(dst []byte, tag string, record []byte) []byte {
	for i := range t {
		p := &t[i]
		before := len(dst)
		switch {
		case p.tag && p.part == 0:
			dst = append(dst, tag...)
		case p.tag:
			dst = append(dst, step.TagPart(tag, p.part-1)...)
		case p.path == nil:
			dst = append(dst, p.text...)
		default:
			dst = appendField(dst, record, p.path)
		}
		if len(dst) == before {
			dst = append(dst, p.otherwise...)
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
	case err != nil || t.Kind == msgpack.KindNil:
		return dst
	case t.Kind == msgpack.KindStr || t.Kind == msgpack.KindBin:
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
	if err != nil || t.Kind != msgpack.KindMap {
		return nil, false
	}
	b = b[n:]
	for range t.Len {
		key, n, err := msgpack.ReadToken(b)
		if err != nil {
			return nil, false
		}
		is := false
		if key.Kind == msgpack.KindStr && len(b)-n >= key.Len {
			is = string(b[n:n+key.Len]) == want
			n += key.Len
		} else if n, err = msgpack.Skip(b); err != nil {
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

// number reads a template's text as that of a partition.
func number(text []byte) (n int32, ok bool) {
	v, err := strconv.ParseUint(string(text), 10, 31)
	return int32(v), err == nil
}
