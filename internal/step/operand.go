// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"strings"
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
