// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"reflect"
	"regexp"

	"github.com/expr-lang/expr/ast"
)

// A guard puts these calls into a tree whose types are known.
type guard struct{ *names }

// call replaces a node.
func (g *guard) call(node *ast.Node, name string, arguments ...ast.Node) {
	ast.Patch(node, &ast.CallNode{Callee: g.callee(name, *node), Arguments: arguments})
}

// callee is a function itself, which then need not be looked up.
func (g *guard) callee(name string, at ast.Node) ast.Node {
	do := &ast.ConstantNode{Value: g.typed[name]}
	do.SetLocation(at.Location())
	do.SetType(reflect.TypeOf(do.Value))
	return do
}

// truth is walk for what is true or not: a value of another type is not true.
func (g *guard) truth(node *ast.Node) {
	kind := (*node).Type().Kind()
	g.walk(node)
	if kind == reflect.Interface {
		g.call(node, callTruth, *node, &ast.IntegerNode{})
	}
}

func (g *guard) walk(node *ast.Node) {
	switch x := (*node).(type) {
	case *ast.UnaryNode:
		if x.Operator == "not" || x.Operator == "!" {
			g.truth(&x.Node)
			return
		}
		g.walk(&x.Node)
		if x.Operator != "-" {
			return
		}
		if v := constant(x.Node); v != nil {
			ast.Patch(node, constantNode(negative(v)))
		} else {
			g.call(node, " negative", x.Node)
		}
	case *ast.BinaryNode:
		g.binary(node, x)
	case *ast.CallNode:
		name := x.Callee.(*ast.IdentifierNode)
		if g.typed[name.Value] != nil {
			x.Callee = g.callee(name.Value, name)
		}
		for i := range x.Arguments {
			g.fits(name.Value, i, x.Arguments[i])
			g.walk(&x.Arguments[i])
		}
	case *ast.BuiltinNode:
		list := &x.Arguments[0]
		known := (*list).Type().Kind() != reflect.Interface
		if g.walk(list); !known {
			g.call(list, callList, *list, &ast.StringNode{Value: x.Name})
		}
		body := &x.Arguments[1].(*ast.PredicateNode).Node
		turn := callTruth
		if x.Name == "map" {
			turn = callValue
		}
		var n counter
		ast.Walk(body, &n)
		g.walk(body)
		g.call(body, turn, *body, &ast.IntegerNode{Value: int(n)})
	case *ast.VariableDeclaratorNode:
		g.all(&x.Value, &x.Expr)
	case *ast.ConditionalNode:
		g.truth(&x.Cond)
		g.all(&x.Exp1, &x.Exp2)
	case *ast.ArrayNode:
		for i := range x.Nodes {
			g.walk(&x.Nodes[i])
		}
	}
}

func (g *guard) all(nodes ...*ast.Node) { each(g.walk, nodes) }

func (g *guard) binary(node *ast.Node, x *ast.BinaryNode) {
	switch x.Operator {
	case "and", "&&", "or", "||":
		g.truth(&x.Left)
		g.truth(&x.Right)
		return
	case "matches":
		pattern := regexp.MustCompile(x.Right.(*ast.StringNode).Value) // names has seen it
		g.walk(&x.Left)
		g.call(node, " matches", x.Left, &ast.ConstantNode{Value: pattern})
		return
	}
	g.all(&x.Left, &x.Right)
	switch x.Operator {
	case "..":
		for _, bound := range []*ast.Node{&x.Left, &x.Right} {
			if i, ok := constant(*bound).(int); !ok || i > far || i < -far {
				g.call(bound, callBound, *bound)
			}
		}
	case "-", "*", "/", "**", "^":
		if a, b := constant(x.Left), constant(x.Right); a != nil && b != nil {
			ast.Patch(node, constantNode(operators[x.Operator](a, b)))
			return
		}
		g.call(node, " "+x.Operator, x.Left, x.Right)
	case "==", "<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith", "+":
		g.call(node, " "+x.Operator, x.Left, x.Right)
	case "!=":
		g.call(node, " ==", x.Left, x.Right)
		not := &ast.UnaryNode{Operator: "not", Node: *node}
		not.SetLocation((*node).Location())
		*node = not
	}
}

// fits refuses what an operator that the library does not check has no use for.
func (g *guard) fits(name string, i int, operand ast.Node) {
	kind := operand.Type().Kind()
	number := kind == reflect.Int || kind == reflect.Float64
	switch name {
	case " %":
		if kind == reflect.String || kind == reflect.Bool {
			g.refuse(operand, "%% is of numbers")
		}
	case callPart, callPartOfAny, callSlice:
		if i == 0 && (number || kind == reflect.Bool) {
			g.refuse(operand, "this has no parts")
		}
	case callBounds:
		if kind != reflect.Interface && !number {
			g.refuse(operand, "a number is missing here")
		}
	}
}

// constant is the number that a node is; nil: it is none.
func constant(node ast.Node) any {
	switch x := node.(type) {
	case *ast.IntegerNode:
		return x.Value
	case *ast.FloatNode:
		return x.Value
	}
	return nil
}

func constantNode(v any) ast.Node {
	if i, ok := v.(int); ok {
		return &ast.IntegerNode{Value: i}
	}
	return &ast.FloatNode{Value: v.(float64)}
}

// A counter counts nodes.
type counter int

// Visit counts one.
func (c *counter) Visit(*ast.Node) { *c++ }
