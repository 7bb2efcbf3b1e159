// SPDX-License-Identifier: Apache-2.0

package step

import (
	"regexp"
	"strings"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// A condition is a tree whose leaves compare a field with constants. It is evaluated on the bytes
// of the field, and allocates nothing, but for what an expression does.
type condition struct {
	op       op
	a, b     *condition // of and, or, not
	subject  path       // of a leaf; nil: the tag
	constant constant
	list     []constant
	withNil  bool            // list has nil, which a field that is missing is like
	words    map[string]bool // of a long list of texts
	pattern  *regexp.Regexp

	expression *compiled
}

type op uint8

const (
	opAnd op = iota
	opOr
	opNot
	opTrue // the field is true
	opEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opIn
	opContains
	opMatches
	opExpression
)

// A constant is what a field is compared with.
type constant struct {
	kind  constantKind
	text  string
	truth bool
	figure
}

type constantKind uint8

const (
	isNil constantKind = iota
	isText
	isTruth
	isNumber
)

// holds says whether an event is as the condition says.
func (c *condition) holds(e *event) bool {
	switch c.op {
	case opAnd:
		return c.a.holds(e) && c.b.holds(e)
	case opOr:
		return c.a.holds(e) || c.b.holds(e)
	case opNot:
		return !c.a.holds(e)
	case opExpression:
		return c.expression.holds(e)
	}
	if c.subject == nil {
		return c.text(e, e.tag)
	}
	value := e.get(c.subject)
	if value == nil {
		return c.op == opEqual && c.constant.kind == isNil || c.op == opIn && c.withNil
	}
	if text, ok := textOf(value); ok {
		return c.bytes(text)
	}
	t, _, err := msgpack.ReadToken(value)
	if err != nil {
		return false
	}
	switch c.op {
	case opTrue:
		return t.Bool()
	case opIn:
		for i := range c.list {
			if c.list[i].equals(&t) {
				return true
			}
		}
		return false
	case opEqual:
		return c.constant.equals(&t)
	}
	if c.constant.kind != isNumber {
		return false
	}
	number, ok := figureOf(&t)
	if !ok {
		return false
	}
	order, ok := number.compare(c.constant.figure)
	return ok && c.ordered(order)
}

// equals compares with what is no text.
func (k *constant) equals(t *msgpack.Token) bool {
	switch k.kind {
	case isNil:
		return t.Kind == msgpack.KindNil
	case isTruth:
		return t.Kind == msgpack.KindBool && t.Bool() == k.truth
	case isNumber:
		number, ok := figureOf(t)
		if !ok {
			return false
		}
		order, ok := number.compare(k.figure)
		return ok && order == 0
	}
	return false
}

// ordered says whether an order is the one that is asked for.
func (c *condition) ordered(order int) bool {
	switch c.op {
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	}
	return false
}

// bytes is the answer for a text.
func (c *condition) bytes(text []byte) bool {
	switch c.op {
	case opEqual:
		return c.constant.kind == isText && string(text) == c.constant.text
	case opIn:
		if c.words != nil {
			return c.words[string(text)]
		}
		for i := range c.list {
			if k := &c.list[i]; k.kind == isText && string(text) == k.text {
				return true
			}
		}
		return false
	case opContains:
		return strings.Contains(unsafe.String(unsafe.SliceData(text), len(text)), c.constant.text)
	case opMatches:
		return c.pattern.Match(text)
	case opTrue:
		return false
	}
	return c.constant.kind == isText && c.ordered(compareText(text, c.constant.text))
}

// text is bytes for the tag.
func (c *condition) text(e *event, tag string) bool {
	e.scratch = append(e.scratch[:0], tag...)
	return c.bytes(e.scratch)
}

// compareText compares bytes with a text.
func compareText(a []byte, b string) int {
	switch {
	case string(a) < b:
		return -1
	case string(a) > b:
		return 1
	}
	return 0
}
