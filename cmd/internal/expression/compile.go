// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/spillwaylog/spillway/internal/step"
)

// Bounds of an expression.
const (
	maxText  = 4 << 10
	maxNodes = 500
	maxItems = 1 << 16 // of lists that are made while it is evaluated
)

// Compile compiles an expression. Its error is a *step.Fault.
func Compile(text string) (e *step.Expression, err error) {
	defer func() { // a library's slip must not end a collector that reloads
		if r := recover(); r != nil {
			e, err = nil, &step.Fault{Text: "this is not understood", Syntax: true}
			if f, ok := r.(*step.Fault); ok {
				err = f
			}
		}
	}()
	readable := plain(text)
	m := &meter{}
	c := conf.CreateNew()
	c.MaxNodes, c.Expect, c.ExpectAny = maxNodes, reflect.Bool, true
	for name := range c.Builtins {
		c.Disabled[name] = true
	}
	clear(c.Builtins)
	c.Functions = m.textCalls()
	tree, err := parser.ParseWithConfig(readable, c)
	if err != nil {
		return nil, faultOf(text, err, true)
	}
	n := &names{text: []rune(text), typed: m.calls(), texts: c.Functions, fields: map[string][]string{}}
	ast.Walk(&tree.Node, quotes{n})
	n.walk(&tree.Node)
	if id, ok := tree.Node.(*ast.IdentifierNode); ok { // which a condition says better
		return nil, &step.Fault{At: n.at(id), Text: "an expression is more than a field", Syntax: true}
	}
	env := types.Map{}
	for name, do := range n.typed {
		env[name] = types.TypeOf(do)
	}
	for slot := range n.fields {
		env[slot] = types.Any
	}
	c.WithEnv(env)
	if _, err := checker.Check(tree, c); err != nil {
		return nil, faultOf(text, err, false)
	}
	g := &guard{names: n}
	g.truth(&tree.Node)
	if _, err := checker.Check(tree, c); err != nil {
		return nil, faultOf(text, err, false)
	}
	if err := optimizer.Optimize(&tree.Node, c); err != nil {
		return nil, faultOf(text, err, false)
	}
	program, err := compiler.Compile(tree, c)
	if err != nil {
		return nil, faultOf(text, err, false)
	}
	return m.expression(program, n), nil
}

// expression is a program with its fields.
func (m *meter) expression(program *vm.Program, n *names) *step.Expression {
	slots := slices.Sorted(maps.Keys(n.fields))
	e := &step.Expression{}
	for _, slot := range slots {
		e.Fields = append(e.Fields, n.fields[slot])
	}
	machine := vm.VM{MemoryBudget: maxItems}
	env := make(map[string]any, len(slots))
	e.Holds = func(values []any) (bool, error) {
		for i, slot := range slots {
			env[slot] = known(values[i])
		}
		m.left = maxCost
		out, err := machine.Run(program, env)
		for _, slot := range slots {
			env[slot] = nil
		}
		if err != nil {
			if f := (*file.Error)(nil); errors.As(err, &f) { // without the text, which the configuration has
				err = errors.New(f.Message)
			}
			return false, err
		}
		holds, _ := out.(bool)
		return holds, nil
	}
	return e
}

// plain refuses texts that are something else to a condition: other blanks than its own, which are
// part of a name there, and comments. It returns the text as the library reads it, which does not
// take \" in single quotes.
func plain(text string) string {
	refuse := func(at int, why string) { panic(&step.Fault{At: at, Text: why}) }
	if len(text) > maxText {
		refuse(maxText, "an expression has at most 4 KiB")
	}
	if !utf8.ValidString(text) {
		refuse(0, "this is no UTF-8")
	}
	readable, quote, escaped := []byte(text), rune(0), false
	for at, r := range text {
		switch {
		case quote != 0:
			if r == '"' && quote == '\'' && escaped {
				readable[at] = 'a' // another escape; names reads the text itself
			}
			if r == quote && !escaped {
				quote = 0
			}
			escaped = r == '\\' && !escaped && quote != '`'
		case r == '"' || r == '\'' || r == '`':
			quote, escaped = r, false
		case unicode.IsSpace(r) && !strings.ContainsRune(" \t\r\n", r):
			refuse(at, "this is a blank of another kind")
		case strings.HasPrefix(text[at:], "//") || strings.HasPrefix(text[at:], "/*"):
			refuse(at, "a comment is not taken here")
		}
	}
	return string(readable)
}

// faultOf is an error of the library's.
func faultOf(text string, err error, syntax bool) *step.Fault {
	f := (*file.Error)(nil)
	if !errors.As(err, &f) {
		return &step.Fault{Text: said(err.Error())}
	}
	at := 0
	for range f.From {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return &step.Fault{At: at, Text: said(f.Message), Syntax: syntax}
}

// said is a message of the library's in the words of this one.
func said(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if strings.HasPrefix(message, "unexpected token EOF") {
		return "something is missing at the end"
	}
	if token := unexpected.FindStringSubmatch(message); token != nil {
		return token[1] + " is not understood here"
	}
	for _, begin := range []string{
		"invalid operation", "expected ", "cannot use ", "builtin ", "predicate ", "non-bool ",
	} {
		if strings.HasPrefix(message, begin) {
			return strings.TrimSpace(inWords.Replace(message))
		}
	}
	return message
}

var unexpected = regexp.MustCompile(`^unexpected token \w+\("(.*)"\)$`)

var inWords = strings.NewReplacer(
	"(mismatched types ", "(between ", "builtin ", "", "takes only array", "takes a list",
	"predicate should return boolean", "what is asked of an item is true or false",
	"non-bool expression (type ", "", ") used as condition", " is no condition",
	"unknown", "a field", "[]interface {}", "a list", "[]string", "a list", "[]int", "a list",
	"float64", "a number", "int", "a number", "string", "a text", "bool", "true or false",
)
