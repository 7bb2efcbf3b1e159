// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A parser reads a condition:
//
//	or       = and { ("or" | "||") and }
//	and      = not { ("and" | "&&") not }
//	not      = ("not" | "!") not | "(" or ")" | operand
//	operand  = leaf, or an expression, which is compiled elsewhere
//	leaf     = field [ compare constant | ["not"] "in" "[" constant { "," constant } "]" |
//	           ["not"] "contains" text | ["not"] "matches" text ]
//	compare  = "==" | "!=" | "<" | "<=" | ">" | ">="
//	constant = text | number | "true" | "false" | "nil"
//
// A field is a path of names, or tag, which is that of the event; a field that is called so stands
// in backquotes.
type parser struct {
	text  string
	at    int // of what follows
	from  int // of the token
	token string
	depth int

	compile Compiler // nil: there are no expressions
}

// parseCondition reads a condition. What it does not understand is an expression, if there is a
// compiler.
func parseCondition(text string, compile Compiler) (*condition, error) {
	p := &parser{text: text, compile: compile}
	c, wrong := p.try(func(p *parser) *condition {
		p.next()
		c := p.or()
		if p.token != "" {
			p.fail("%s is not understood here", p.token)
		}
		return c
	})
	if wrong != nil {
		return nil, wrong
	}
	return c, nil
}

func (p *parser) fail(format string, args ...any) {
	panic(&Fault{At: p.from, Text: fmt.Sprintf(format, args...)})
}

// refuse fails where no expression could be meant either.
func (p *parser) refuse(format string, args ...any) {
	panic(&Fault{At: p.from, Text: fmt.Sprintf(format, args...), final: true})
}

// next goes to the next token; it is empty at the end.
func (p *parser) next() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	p.from = p.at
	if p.at == len(p.text) {
		p.token = ""
		return
	}
	rest := p.text[p.at:]
	n := 1
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		n = p.quoted(rest, c)
	case isName(c) || c == '`':
		n = p.word(rest)
	case c >= '0' && c <= '9' || c == '-' || c == '+':
		for n < len(rest) && (isName(rest[n]) || strings.IndexByte("0123456789.+", rest[n]) >= 0 ||
			rest[n] == '-' && (rest[n-1] == 'e' || rest[n-1] == 'E')) {
			n++
		}
	default:
		for _, two := range []string{"==", "!=", "<=", ">=", "&&", "||"} {
			if strings.HasPrefix(rest, two) {
				n = 2
			}
		}
		if n == 1 && strings.IndexByte("()[],<>!", c) < 0 {
			if c == '=' {
				p.refuse("= is no comparison; == is")
			}
			p.fail("%q is not understood here", c)
		}
	}
	p.token = rest[:n]
	p.at += n
}

// quoted is the length of the text in quotes at the start of rest.
func (p *parser) quoted(rest string, quote byte) int {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	p.refuse("the text has no end: a %c is missing", quote)
	return 0
}

// word is the length of the path at the start of rest.
func (p *parser) word(rest string) int {
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '`':
			end := strings.IndexByte(rest[i+1:], '`')
			if end < 0 {
				p.refuse("the name has no end: a ` is missing")
			}
			i += end + 1
		case !isName(c) && c != '.' && c != '-' && (c < '0' || c > '9'):
			return i
		}
	}
	return len(rest)
}

// isName says whether a byte may stand in a name without backquotes. Digits and dashes may, too,
// but not first.
func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 || strings.IndexByte("_@$/", c) >= 0
}

func (p *parser) or() *condition {
	if p.depth++; p.depth > maxDepth {
		p.refuse("this nests too deep")
	}
	defer func() { p.depth-- }()
	if p.compile != nil {
		if end, weak := p.extent(false); weak {
			return p.expression(end, nil)
		}
	}
	c := p.and()
	for p.token == "or" || p.token == "||" {
		p.next()
		c = &condition{op: opOr, a: c, b: p.and()}
	}
	return c
}

func (p *parser) and() *condition {
	c := p.not()
	for p.token == "and" || p.token == "&&" {
		p.next()
		c = &condition{op: opAnd, a: c, b: p.not()}
	}
	return c
}

func (p *parser) not() *condition {
	if p.depth++; p.depth > maxDepth {
		p.refuse("this nests too deep")
	}
	defer func() { p.depth-- }()
	switch p.token {
	case "not", "!":
		p.next()
		return &condition{op: opNot, a: p.not()}
	case "(":
		if p.compile != nil && !p.grouped() {
			break
		}
		p.next()
		c := p.or()
		if p.token != ")" {
			p.missing("a )")
		}
		p.next()
		return c
	}
	return p.operand()
}

// missing fails where something else is expected.
func (p *parser) missing(what string) {
	if p.token == "" {
		p.fail("%s is missing at the end", what)
	}
	p.fail("%s is missing before %s", what, p.token)
}

// comparisons are those by signs; not says that the result is turned round.
var comparisons = map[string]struct {
	op  op
	not bool
}{
	"==": {op: opEqual}, "!=": {opEqual, true}, "<": {op: opLess}, "<=": {op: opLessEqual}, ">": {op: opGreater},
	">=": {op: opGreaterEqual},
}

// words of the language, which are no fields.
var reserved = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "contains": true, "matches": true, "true": true, "false": true,
	"nil": true, "null": true,
}

func (p *parser) leaf() *condition {
	c, start := &condition{op: opTrue}, p.from
	switch {
	case p.token == "" || reserved[p.token] || !isName(p.token[0]) && p.token[0] != '`':
		if p.token != "" && (p.token[0] == '"' || p.token[0] == '\'' || p.token[0] >= '0' && p.token[0] <= '9') {
			p.fail("a comparison begins with a field; the constant stands behind it")
		}
		p.missing("a field")
	case p.token != "tag":
		var err error
		if c.subject, err = parsePath(p.token); err != nil {
			p.refuse("%v", err)
		}
	}
	p.next()
	not := false
	if p.token == "not" {
		not = true
		if p.next(); p.token != "in" && p.token != "contains" && p.token != "matches" {
			p.missing("in, contains or matches")
		}
	}
	switch how, ok := comparisons[p.token]; {
	case ok:
		p.next()
		c.op, not = how.op, how.not
		if c.constant = p.constant(); c.op != opEqual && c.constant.kind != isText && c.constant.kind != isNumber {
			p.refuse("only texts and numbers have an order")
		}
	case p.token == "in":
		p.next()
		p.list(c)
	case p.token == "contains":
		p.next()
		c.op, c.constant = opContains, p.wantsText()
	case p.token == "matches":
		p.next()
		at := p.from
		c.op, c.constant = opMatches, p.wantsText()
		var err error
		if c.pattern, err = regexp.Compile(c.constant.text); err != nil {
			p.from = at
			p.refuse("%v", err)
		}
	case c.subject == nil:
		p.missing("a comparison of the tag")
	}
	if c.subject == nil && (c.op != opIn && c.constant.kind != isText ||
		slices.ContainsFunc(c.list, func(k constant) bool { return k.kind != isText })) {
		p.from = start
		p.refuse("the tag is a text")
	}
	if not {
		return &condition{op: opNot, a: c}
	}
	return c
}

// longList is from how many texts on a list is looked up.
const longList = 8

func (p *parser) list(c *condition) {
	c.op = opIn
	if p.token != "[" {
		p.missing("a [")
	}
	texts := true
	for {
		if p.next(); p.token == "]" && len(c.list) == 0 {
			p.refuse("the list is empty")
		}
		k := p.constant()
		texts = texts && k.kind == isText
		c.withNil = c.withNil || k.kind == isNil
		c.list = append(c.list, k)
		if p.token != "," {
			break
		}
	}
	if p.token != "]" {
		p.missing("a ]")
	}
	p.next()
	if texts && len(c.list) >= longList {
		c.words = map[string]bool{}
		for i := range c.list {
			c.words[c.list[i].text] = true
		}
	}
}

func (p *parser) wantsText() constant {
	switch {
	case p.token != "" && p.token[0] >= '0' && p.token[0] <= '9':
		p.refuse("a text in quotes is missing before %s", p.token)
	case p.token == "" || p.token[0] != '"' && p.token[0] != '\'':
		p.missing("a text in quotes")
	}
	return p.constant()
}

// constant reads one.
func (p *parser) constant() (k constant) {
	switch token := p.token; {
	case token == "":
		p.missing("a constant")
	case token == "nil" || token == "null":
	case token == "true" || token == "false":
		k = constant{kind: isTruth, truth: token == "true"}
	case token[0] == '"' || token[0] == '\'':
		text, err := Unquote(token)
		if err != nil {
			p.refuse("%v", err)
		}
		k = constant{kind: isText, text: text}
	case token[0] >= '0' && token[0] <= '9' || token[0] == '-' || token[0] == '+':
		var ok bool
		if k.figure, ok = parseFigure(token); !ok {
			p.refuse("%s is no number", token)
		}
		k.kind = isNumber
	case strings.ToUpper(token) == token && isName(token[0]):
		p.refuse("%s is a field; a constant stands in quotes, \"%s\", and such a field in backquotes", token, token)
	case isName(token[0]) || token[0] == '`':
		p.fail("%s is a field; a field is compared with a constant, such as \"%s\"", token, token)
	default:
		p.missing("a constant")
	}
	p.next()
	return k
}

// Unquote reads a text in double quotes, or in single ones.
func Unquote(token string) (string, error) {
	text, err := unquote(token)
	if err != nil {
		return "", fmt.Errorf("%s: a backslash begins an escape that is none; \\\\ is a backslash", token)
	}
	return text, nil
}

func unquote(token string) (string, error) {
	if token[0] == '"' {
		return strconv.Unquote(token)
	}
	var b strings.Builder
	for rest := token[1 : len(token)-1]; rest != ""; {
		if rest[0] == '\\' && len(rest) > 1 && rest[1] == '"' { // which strconv takes only in double quotes
			b.WriteByte('"')
			rest = rest[2:]
			continue
		}
		c, wide, tail, err := strconv.UnquoteChar(rest, '\'')
		if err != nil {
			return "", err
		}
		if wide {
			b.WriteRune(c)
		} else {
			b.WriteByte(byte(c))
		}
		rest = tail
	}
	return b.String(), nil
}

// parseFigure reads a number.
func parseFigure(text string) (figure, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return integer(n), true
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return figure{size: n}, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return figure{float: true, f: f}, err == nil && f == f && f-f == 0
}
