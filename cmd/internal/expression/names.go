// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"

	"github.com/spillwaylog/spillway/internal/step"
)

// What a tree calls that is not written in the text: operators as conditions have them, parts of
// values, and what a turn of a loop costs. No name that is written begins with a blank.
const (
	callTruth     = " truth"
	callValue     = " value"
	callPart      = " []"
	callPartOfAny = " ?[]"
	callSlice     = " [:]"
	callBounds    = " :"
	callList      = " list"
	callBound     = " .."
)

// names finds the fields that an expression names, and refuses what is no part of the language.
type names struct {
	text      []rune
	typed     map[string]any      // functions, by what they are called by
	texts     conf.FunctionsTable // further ones
	fields    map[string][]string // by the identifiers that stand for them
	variables []string
}

func (n *names) at(node ast.Node) int { return len(string(n.text[:node.Location().From])) }

func (n *names) refuse(node ast.Node, format string, args ...any) {
	panic(&step.Fault{At: n.at(node), Text: fmt.Sprintf(format, args...)})
}

// quotes reads the texts in a tree anew, as conditions do: to the library \xff is a character, to
// them a byte.
type quotes struct{ *names }

// Visit reads a text in quotes.
func (q quotes) Visit(node *ast.Node) {
	text, ok := (*node).(*ast.StringNode)
	if !ok {
		return
	}
	at := text.Location()
	token := string(q.text[at.From:at.To])
	if token[0] != '"' && token[0] != '\'' { // a name behind a dot, or one in backquotes
		return
	}
	var err error
	if text.Value, err = step.Unquote(token); err != nil {
		q.refuse(text, "%v", err)
	}
}

// predicates are the loops that there are.
var predicates = []string{"all", "any", "count", "filter", "find", "map", "none", "one"}

// walk replaces each field in a tree by an identifier of its own: the longest path that is written
// with dots.
func (n *names) walk(node *ast.Node) {
	if path := n.path(*node); path != nil {
		slot := "." + strings.Join(path, "\x00")
		if id, ok := (*node).(*ast.IdentifierNode); ok && id.Value == "tag" {
			slot, path = id.Value, nil
		}
		n.fields[slot] = path
		ast.Patch(node, &ast.IdentifierNode{Value: slot})
		return
	}
	switch x := (*node).(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.PointerNode:
	case *ast.IdentifierNode:
		switch x.Value {
		case "null":
			ast.Patch(node, &ast.NilNode{})
		case "$env":
			n.refuse(x, "a field of that name stands in backquotes")
		}
	case *ast.UnaryNode:
		n.walk(&x.Node)
	case *ast.BinaryNode:
		n.binary(x)
		if x.Operator == "%" { // of which the library takes no floats
			n.call(node, " %", x.Left, x.Right)
		}
	case *ast.ChainNode:
		n.walk(&x.Node)
		*node = x.Node
	case *ast.MemberNode:
		name := callPart
		if x.Optional {
			name = callPartOfAny
		}
		n.all(&x.Node, &x.Property)
		n.call(node, name, x.Node, x.Property)
	case *ast.SliceNode:
		n.all(&x.Node, &x.From, &x.To)
		var between ast.Node = &ast.NilNode{}
		between.SetLocation(x.Location())
		n.call(&between, callBounds, cmp.Or[ast.Node](x.From, &ast.IntegerNode{}),
			cmp.Or[ast.Node](x.To, &ast.IntegerNode{Value: math.MaxInt}))
		n.call(node, callSlice, x.Node, between)
	case *ast.CallNode:
		name, ok := x.Callee.(*ast.IdentifierNode)
		if !ok {
			n.refuse(x, "only functions are called")
		}
		if known := n.functions(); !slices.Contains(known, name.Value) {
			n.refuse(x, "there is no function %s, but %s", name.Value, strings.Join(known, ", "))
		}
		for i := range x.Arguments {
			n.walk(&x.Arguments[i])
		}
	case *ast.BuiltinNode:
		if !slices.Contains(predicates, x.Name) || len(x.Arguments) != 2 {
			n.refuse(x, "%s(…) is not taken here", x.Name)
		}
		n.all(&x.Arguments[0], &x.Arguments[1])
	case *ast.PredicateNode:
		n.walk(&x.Node)
	case *ast.VariableDeclaratorNode:
		n.walk(&x.Value)
		n.variables = append(n.variables, x.Name)
		n.walk(&x.Expr)
	case *ast.ConditionalNode:
		n.all(&x.Cond, &x.Exp1, &x.Exp2)
	case *ast.ArrayNode:
		for i := range x.Nodes {
			n.walk(&x.Nodes[i])
		}
	default:
		n.refuse(*node, "this is not taken here")
	}
}

// call replaces a node by a call of what has no name that can be written.
func (n *names) call(node *ast.Node, name string, arguments ...ast.Node) {
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation((*node).Location())
	ast.Patch(node, &ast.CallNode{Callee: callee, Arguments: arguments})
}

// functions are the names of all that can be called.
func (n *names) functions() []string {
	list := slices.Concat(predicates, slices.Collect(maps.Keys(n.typed)), slices.Collect(maps.Keys(n.texts)))
	list = slices.DeleteFunc(list, func(name string) bool { return name[0] == ' ' })
	slices.Sort(list)
	return list
}

func (n *names) all(nodes ...*ast.Node) { each(n.walk, nodes) }

// each walks those nodes that are there.
func each(walk func(*ast.Node), nodes []*ast.Node) {
	for _, node := range nodes {
		if *node != nil {
			walk(node)
		}
	}
}

// path is the field that a node names; nil: it is none.
func (n *names) path(node ast.Node) []string {
	switch x := node.(type) {
	case *ast.IdentifierNode:
		if x.Value != "$env" && x.Value != "null" && !slices.Contains(n.variables, x.Value) {
			return []string{x.Value}
		}
	case *ast.StringNode:
		if n.quoted(x) {
			return []string{x.Value}
		}
	case *ast.ChainNode:
		return n.path(x.Node)
	case *ast.MemberNode:
		name, ok := x.Property.(*ast.StringNode)
		if base := n.path(x.Node); base != nil && ok && !n.quoted(name) {
			return append(base, name.Value)
		}
	}
	return nil
}

// quoted says whether a text stands in backquotes: it is a field then.
func (n *names) quoted(text *ast.StringNode) bool {
	from := text.Location().From
	return from < len(n.text) && n.text[from] == '`'
}

// binary is walk for two operands.
func (n *names) binary(x *ast.BinaryNode) {
	switch x.Operator {
	case "and", "&&", "or", "||":
	case "==", "!=", "<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith", "matches",
		"+", "-", "*", "/", "%", "**", "^", "..", "??":
		if left, ok := x.Left.(*ast.UnaryNode); ok && (left.Operator == "not" || left.Operator == "!") {
			n.refuse(left, "%s belongs to what stands before %s alone; not (…) turns round the whole", left.Operator,
				x.Operator)
		}
	default:
		n.refuse(x, "%s is not taken here", x.Operator)
	}
	switch x.Operator {
	case "-", "/":
		if at := x.Location().From; at > 0 &&
			(unicode.IsLetter(n.text[at-1]) || unicode.IsDigit(n.text[at-1]) || n.text[at-1] == '_') {
			n.refuse(x, "a name that has a %s stands in backquotes; an operator has a blank before it", x.Operator)
		}
	case "matches":
		pattern, ok := x.Right.(*ast.StringNode)
		if !ok || n.quoted(pattern) {
			n.refuse(x.Right, "a pattern is a text in quotes")
		}
		if _, err := regexp.Compile(pattern.Value); err != nil {
			n.refuse(pattern, "%v", err)
		}
	}
	n.all(&x.Left, &x.Right)
}
