// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file's tree. The parser's time grows with the square of the keys of one map.
const (
	maxTokens = 20_000
	maxDepth  = 8 // of brackets, and of the tree
)

type kind uint8

const (
	null kind = iota
	text
	number
	boolean
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"nothing", "text", "a number", "true or false", "a list", "a map"}[k]
}

// A node is a value with its place.
type node struct {
	file         *configFile
	line, column int
	kind         kind
	value        string // of a scalar: true or false, or as it was written
	items        []*node
	pairs        []pair
}

type pair struct{ key, value *node }

// get returns the value of a key, nil if there is none.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.value == key {
			return p.value
		}
	}
	return nil
}

func (n *node) mistake(format string, args ...any) Mistake {
	return n.file.mistake(n.line, n.column, format, args...)
}

// parse returns the tree of a file; nil where it has none. Mistakes of the syntax are one at a
// time.
func parse(s *configFile) (root *node, mistakes Mistakes) {
	defer func() { // a library's slip must not end a collector that reloads
		if e := recover(); e != nil {
			root, mistakes = nil, Mistakes{s.mistake(0, 0, "this cannot be read as YAML")}
		}
	}()
	tokens := lexer.Tokenize(strings.Join(s.lines, "\n"))
	if m := refused(s, tokens); m != nil {
		return nil, Mistakes{*m}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // two keys are told with the place of both
	if err != nil {
		return nil, Mistakes{syntax(s, err)}
	}
	s.plain = false
	b := builder{file: s}
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			root = b.build(doc.Body, 0)
			break
		}
	}
	return root, b.mistakes
}

// syntax says where the parser did not understand.
func syntax(s *configFile, err error) Mistake {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return s.mistake(0, 0, "this is no YAML: %s", line)
	}
	at := e.GetToken().Position
	hint := ""
	if at.Line <= len(s.lines) && endsInColon.MatchString(s.lines[at.Line-1]) {
		hint = "; a URL that ends in a colon stands in quotes"
	}
	return s.mistake(at.Line, at.Column, "this is no YAML: %s%s", e.GetMessage(), hint)
}

// endsInColon is a line such as "all: stdout:".
var endsInColon = regexp.MustCompile(`:\s+[a-z+]+:\s*(#.*)?$`)

// refused says what of YAML is not taken, and what is too much, before anything is made of it.
func refused(s *configFile, tokens token.Tokens) *Mistake {
	at := func(t *token.Token, format string, args ...any) *Mistake {
		m := s.mistake(t.Position.Line, t.Position.Column, format, args...)
		return &m
	}
	depth, dashes, documents := 0, 0, 0
	for i, t := range tokens {
		if i == maxTokens {
			return at(t, "the file has more than %d tokens", maxTokens)
		}
		if t.Type != token.SequenceEntryType {
			dashes = 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return at(t, "anchors, aliases and merges are not taken: write it out, or use include")
		case token.TagType, token.DirectiveType, token.MappingKeyType:
			return at(t, "tags, directives and ? keys are not taken")
		case token.DocumentHeaderType:
			if documents++; documents > 1 || i > 0 && tokens[i-1].Type != token.CommentType {
				return at(t, "a second document is not taken: use include")
			}
		case token.DocumentEndType:
			return at(t, "a second document is not taken: use include")
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		}
		if depth > maxDepth || dashes > maxDepth {
			return at(t, "this nests too deep")
		}
	}
	return nil
}

// exponent is a number that the lexer takes for text: it looks for a point, not for an exponent,
// and what is too large is none to it. Whole numbers that are too long stay text, which loses no
// digit.
var exponent = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+$`)

// A builder makes nodes of what the parser made.
type builder struct {
	file     *configFile
	mistakes Mistakes
}

func (b *builder) build(n ast.Node, depth int) *node {
	at := n.GetToken().Position
	out := &node{file: b.file, line: at.Line, column: at.Column}
	if depth > maxDepth {
		b.mistakes = append(b.mistakes, out.mistake("this nests too deep"))
		return out
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		out.kind, out.value = text, n.Value
		if n.Token.Type == token.StringType && exponent.MatchString(n.Value) { // it has no quotes
			out.kind = number
		}
	case *ast.LiteralNode:
		out.kind, out.value = text, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.value = number, n.GetToken().Value
	case *ast.BoolNode:
		out.kind, out.value = boolean, strconv.FormatBool(n.Value) // it may be written True or TRUE
	case *ast.SequenceNode:
		out.kind = list
		for _, item := range n.Values {
			out.items = append(out.items, b.build(item, depth+1))
		}
	case *ast.MappingNode:
		out.kind = mapping
		b.pairs(out, n.Values, depth)
	case *ast.MappingValueNode:
		out.kind = mapping
		b.pairs(out, []*ast.MappingValueNode{n}, depth)
	default:
		b.mistakes = append(b.mistakes, out.mistake("this is not taken"))
	}
	return out
}

// pairs adds the pairs of a map to out, whose place is that of its first key.
func (b *builder) pairs(out *node, values []*ast.MappingValueNode, depth int) {
	seen := map[string]*node{}
	for i, v := range values {
		at := v.Key.GetToken()
		key := &node{file: b.file, line: at.Position.Line, column: at.Position.Column, kind: text, value: at.Value}
		if i == 0 && !v.IsFlowStyle {
			out.line, out.column = key.line, key.column
		}
		if first := seen[key.value]; first != nil {
			b.mistakes = append(b.mistakes, key.mistake("the key %s stands here twice; first in line %d",
				quote(key.value), first.line))
			continue
		}
		seen[key.value] = key
		out.pairs = append(out.pairs, pair{key, b.build(v.Value, depth+1)})
	}
}

// quote shows a piece of a file, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > 64 {
		s = string(r[:64])
	}
	return fmt.Sprintf("%q", s)
}
