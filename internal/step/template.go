// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spillwaylog/spillway/msgpack"
)

// A template is a text with placeholders: {tag}, {tag[0]} for a part of it, and {user.id} for a
// field. What stands behind a | is for where there is nothing.
//
// There are two more kinds of placeholders, with parsers of their own:
// cmd/internal/kafka/template.go has the same ones for records of Kafka, internal/files/pattern.go
// those of paths. {host} is the field host in these two templates, and in a path the name of the
// machine that writes the file.
type template []piece

// A piece is a text, the tag or a part of it, or a field.
type piece struct {
	text      string
	tag       bool
	part      int // of the tag; -1: all of it
	field     path
	otherwise string
	may       bool // it may be missing: otherwise stands for it
}

func parseTemplate(text string) (t template, err error) {
	for text != "" {
		before, rest, found := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a } without its {")
		}
		if before != "" {
			t = append(t, piece{text: before})
		}
		if !found {
			break
		}
		inner, behind, closed := strings.Cut(rest, "}")
		if !closed || strings.Contains(inner, "{") {
			return nil, errors.New("a { without its }")
		}
		p, err := parsePiece(inner)
		if err != nil {
			return nil, err
		}
		t = append(t, p)
		text = behind
	}
	return t, nil
}

func parsePiece(text string) (p piece, err error) {
	where := text
	where, p.otherwise, p.may = strings.Cut(where, "|")
	switch number, ok := strings.CutPrefix(where, "tag["); {
	case where == "tag":
		p.tag, p.part = true, -1
	case ok:
		number, closed := strings.CutSuffix(number, "]")
		n, err := strconv.ParseUint(number, 10, 8)
		if !closed || err != nil {
			return p, fmt.Errorf("{%s} is no part of the tag; {tag[0]} is the first one", where)
		}
		p.tag, p.part = true, int(n)
	default:
		p.field, err = parsePath(where)
	}
	return p, err
}

// append appends the text for an event. An error says what is missing.
func (t template) append(dst []byte, e *event) ([]byte, error) {
	for i := range t {
		p := &t[i]
		switch {
		case p.tag:
			text := e.tag
			if p.part >= 0 {
				text = TagPart(e.tag, p.part)
			}
			if text == "" {
				if !p.may {
					return dst, errors.New("the tag has no such part")
				}
				text = p.otherwise
			}
			dst = append(dst, text...)
		case p.field == nil:
			dst = append(dst, p.text...)
		default:
			var ok bool
			if dst, ok = appendText(dst, e.get(p.field)); ok {
				break
			}
			if !p.may {
				return dst, fmt.Errorf("%s is missing, or no text and no number", p.field)
			}
			dst = append(dst, p.otherwise...)
		}
	}
	return dst, nil
}

// TagPart is a part of a tag, counted from 0; empty if there is none.
func TagPart(tag string, part int) string {
	for ; part > 0; part-- {
		var found bool
		if _, tag, found = strings.Cut(tag, "."); !found {
			return ""
		}
	}
	one, _, _ := strings.Cut(tag, ".")
	return one
}

// appendText appends a text that is not empty, a number or a truth.
func appendText(dst, value []byte) ([]byte, bool) {
	if value == nil {
		return dst, false
	}
	if text, ok := textOf(value); ok {
		return append(dst, text...), len(text) > 0
	}
	t, _, err := msgpack.ReadToken(value)
	if err != nil || t.Kind == msgpack.KindNil || t.Kind >= msgpack.KindExt {
		return dst, false
	}
	out, _, err := msgpack.AppendJSON(dst, value, nil)
	return out, err == nil
}
