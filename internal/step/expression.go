// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"math"
	"strings"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// How conditions and expressions share a text. A condition is operands with and, or, not and
// parentheses between them. The parser understands an operand itself, as a comparison with
// constants; one that it does not understand is an expression, which somebody else compiles:
//
//	level == "ERROR" and (len(msg) > 100 or not (a + b) * 2 == c)
//	└── comparison ─┘     └ expression ┘        └─ expression ─┘
//
// What binds weaker than and and or, a ? b : c for one, makes an expression of all that stands
// between two parentheses.

// An Expression is a part of a condition that this package does not understand itself, compiled.
type Expression struct {
	Fields [][]string // the names that lead to each field that it looks at; none: to the tag

	// Holds says whether it holds for the values of these fields, in their order: nil, which a
	// field that is missing is as well, bool, int, uint64 for a larger number, float64, string,
	// []any, map[string]any or Opaque. It keeps none of them: texts lie in the entry. An error
	// makes the step fail. One goroutine calls it at a time.
	Holds func(values []any) (bool, error)
}

// Opaque stands for a value that is nothing else.
type Opaque struct{}

// A Compiler compiles expressions. A mistake in one is a *Fault.
type Compiler func(text string) (*Expression, error)

// A Fault is a mistake at a byte of a text.
type Fault struct {
	At     int
	Text   string
	Syntax bool // of a Compiler: no more is known than that it is no expression
	final  bool // of the parser: it is no expression either
}

// Error returns Text.
func (f *Fault) Error() string { return f.Text }

// A compiled is an expression of a condition.
type compiled struct {
	*Expression
	paths  []path
	values []any
}

// holds says what the expression says. Where that fails, the step does.
func (x *compiled) holds(e *event) bool {
	for i, p := range x.paths {
		if p == nil {
			x.values[i] = e.tag
			continue
		}
		var err error
		left := maxValues
		if x.values[i], err = valueOf(e.get(p), &left); err != nil {
			return e.fail(err)
		}
	}
	holds, err := x.Holds(x.values)
	clear(x.values)
	if err != nil {
		return e.fail(err)
	}
	return holds
}

// fail notes why the step that runs fails.
func (e *event) fail(err error) bool {
	e.failed = err
	return false
}

// maxValues is how many values an expression gets of one field: each is several times what it is
// in the record.
const maxValues = 10_000

// errValues says that there are more.
var errValues = errors.New("a field of an expression has more than 10,000 values")

// valueOf decodes a value, of at most left values.
func valueOf(b []byte, left *int) (any, error) {
	if b == nil {
		return nil, nil
	}
	if text, ok := textOf(b); ok {
		return unsafe.String(unsafe.SliceData(text), len(text)), nil // the entry stays as it is meanwhile
	}
	t, n, err := msgpack.ReadToken(b)
	if err != nil {
		return nil, err
	}
	if t.Kind == msgpack.KindArray || t.Kind == msgpack.KindMap {
		if *left -= t.Len; *left < 0 {
			return nil, errValues
		}
	}
	switch t.Kind {
	case msgpack.KindNil:
		return nil, nil
	case msgpack.KindBool:
		return t.Bool(), nil
	case msgpack.KindInt, msgpack.KindUint:
		if i, ok := t.Int(); ok && i >= math.MinInt && i <= math.MaxInt {
			return int(i), nil
		} else if ok { // of 64 bits where int has 32: exact up to 53
			return float64(i), nil
		}
		u, _ := t.Uint()
		return u, nil
	case msgpack.KindFloat32, msgpack.KindFloat64:
		return t.Float(), nil
	case msgpack.KindArray:
		list := make([]any, t.Len)
		for i := range list {
			k := size(b[n:])
			if list[i], err = valueOf(b[n:n+k], left); err != nil {
				return nil, err
			}
			n += k
		}
		return list, nil
	case msgpack.KindMap:
		m := make(map[string]any, t.Len)
		for range t.Len {
			key, value := pair(b[n:])
			n += len(key) + len(value)
			if name, ok := nameOf(key); ok {
				if m[string(name)], err = valueOf(value, left); err != nil {
					return nil, err
				}
			}
		}
		return m, nil
	}
	return Opaque{}, nil
}

// operand reads a comparison, or an expression.
func (p *parser) operand() *condition {
	if p.compile == nil {
		return p.leaf()
	}
	start := *p
	c, own := p.try((*parser).leaf)
	if own == nil && p.ends() {
		return c
	}
	if own == nil {
		own = &Fault{At: p.from, Text: p.token + " is not understood here"}
	}
	if own.final {
		panic(own)
	}
	*p = start
	end, _ := p.extent(true)
	if end == p.from {
		panic(own)
	}
	return p.expression(end, own)
}

// try has a part of the grammar read, and returns its mistake.
func (p *parser) try(read func(*parser) *condition) (c *condition, wrong *Fault) {
	defer func() {
		if f, ok := recover().(*Fault); ok { // the only panics are the parser's own
			c, wrong = nil, f
		}
	}()
	return read(p), nil
}

// ends says whether an operand may end before the token.
func (p *parser) ends() bool {
	switch p.token {
	case "", "and", "or", "&&", "||", ")":
		return true
	}
	return false
}

// expression compiles what stands from the token to an end. own is what the parser itself has
// against it.
func (p *parser) expression(end int, own *Fault) *condition {
	text := strings.TrimRight(p.text[p.from:end], " \t\r\n")
	e, err := p.compile(text)
	if f := (*Fault)(nil); errors.As(err, &f) {
		if own != nil && f.Syntax && own.At >= p.from+f.At {
			panic(own)
		}
		panic(&Fault{At: p.from + f.At, Text: f.Text})
	} else if err != nil {
		p.fail("%v", err)
	}
	x := &compiled{Expression: e, values: make([]any, len(e.Fields))}
	for _, names := range e.Fields {
		if len(names) > maxDepth {
			p.fail("a field has more than %d names", maxDepth)
		}
		var field path
		for _, text := range names {
			field = append(field, newName(text))
		}
		x.paths = append(x.paths, field)
	}
	p.at = end
	p.next()
	return &condition{op: opExpression, expression: x}
}

// grouped says whether the parenthesis that opens at the token closes around a whole operand.
func (p *parser) grouped() bool {
	inner := *p
	inner.from = p.at
	end, _ := inner.extent(false)
	if end == len(p.text) {
		return true // no parenthesis closes it, which is told
	}
	behind := strings.TrimLeft(p.text[end+1:], " \t\r\n")
	if behind == "" || behind[0] == ')' || strings.HasPrefix(behind, "&&") || strings.HasPrefix(behind, "||") {
		return true
	}
	word := behind[:nameLen(behind)]
	return word == "and" || word == "or"
}

// nameLen is the length of the letters and digits at the start of rest.
func nameLen(rest string) (n int) {
	for n < len(rest) && (isName(rest[n]) || rest[n] >= '0' && rest[n] <= '9') {
		n++
	}
	return n
}

// extent returns where what begins at the token ends: before the parenthesis that closes it, or
// before and and or if it is an operand. weak says that it has something that binds weaker.
func (p *parser) extent(operand bool) (end int, weak bool) {
	depth := 0
	for i := p.from; i < len(p.text); {
		rest, n := p.text[i:], 1
		switch c := rest[0]; {
		case c == '"' || c == '\'' || c == '`':
			n = quotedLen(rest)
		case isName(c):
			n = nameLen(rest)
			if word := rest[:n]; depth == 0 {
				if operand && (word == "and" || word == "or") {
					return i, weak
				}
				weak = weak || word == "let" || word == "if"
			}
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			if depth == 0 {
				return i, weak
			}
			depth--
		case strings.HasPrefix(rest, "&&") || strings.HasPrefix(rest, "||"):
			if n = 2; operand && depth == 0 {
				return i, weak
			}
		case strings.HasPrefix(rest, "?.") || strings.HasPrefix(rest, "??"):
			n = 2
		case depth == 0 && (c == '?' || c == '|' || c == ';'):
			weak = true
		}
		i += n
	}
	return len(p.text), weak
}

// quotedLen is the length of what stands in quotes at the start of rest; all of it if they do not
// end.
func quotedLen(rest string) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && rest[0] != '`':
			i++
		case rest[i] == rest[0]:
			return i + 1
		}
	}
	return len(rest)
}
