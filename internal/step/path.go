// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/msgpack"
)

// maxDepth is how many names a path may have, and how deep a condition may nest.
const maxDepth = 32

// A path leads to a field of a record, or of maps in it.
type path []name

// A name is one of a path, also as the key of a map.
type name struct {
	text string
	key  []byte // MessagePack
}

func newName(text string) name { return name{text, msgpack.AppendString(nil, text)} }

// bytes is the text.
func (n *name) bytes() []byte { return n.key[len(n.key)-len(n.text):] }

// String is the path as it is written.
func (p path) String() string {
	var b strings.Builder
	for i := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		if p[i].text == "" || strings.ContainsAny(p[i].text, ".` ") {
			fmt.Fprintf(&b, "`%s`", p[i].text)
		} else {
			b.WriteString(p[i].text)
		}
	}
	return b.String()
}

// pathOf is parsePath that tells a mistake, which is at key.
func pathOf(text string, wrong func(error, ...any), key ...any) path {
	p, err := parsePath(text)
	if err != nil {
		wrong(err, key...)
	}
	return p
}

// parsePath reads a path: names with dots between them; what is between two backquotes is one name.
func parsePath(text string) (path, error) {
	var p path
	for rest, more := text, true; more; {
		var word string
		if quoted, ok := strings.CutPrefix(rest, "`"); ok {
			var closed bool
			if word, rest, closed = strings.Cut(quoted, "`"); !closed {
				return nil, fmt.Errorf("%s: a backquote without another one", text)
			}
			if rest != "" && rest[0] != '.' {
				return nil, fmt.Errorf("%s: names have dots between them", text)
			}
			more = rest != ""
			rest = strings.TrimPrefix(rest, ".")
		} else {
			word, rest, more = strings.Cut(rest, ".")
			switch {
			case text == "":
				return nil, errors.New("the name of a field is empty")
			case word == "":
				return nil, fmt.Errorf("%s: a name is empty; one that has a dot stands in backquotes", text)
			case strings.Contains(word, "`"):
				return nil, fmt.Errorf("%s: a backquote stands around a whole name", text)
			}
		}
		p = append(p, newName(word))
	}
	if len(p) > maxDepth {
		return nil, fmt.Errorf("%s: it has more than %d names", text, maxDepth)
	}
	return p, nil
}
