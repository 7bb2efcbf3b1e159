// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"

	"github.com/spillwaylog/spillway/msgpack"
)

// calls are what can be called: those with a blank are operators. Of functions of these types the
// library calls without a list of arguments, which it would have to allocate.
func (m *meter) calls() map[string]any {
	order := func(holds func(order int) bool) func(a, b any) bool {
		return func(a, b any) bool {
			m.spend(0)
			order, ok := compare(a, b)
			return ok && holds(order)
		}
	}
	texts := func(holds func(a, b string) bool) func(a, b any) bool {
		return func(a, b any) bool {
			x, ok := a.(string)
			y, also := b.(string)
			m.spend(len(x))
			return ok && also && holds(x, y)
		}
	}
	turn := func(v, nodes any) any {
		m.spend(nodes.(int) * nodeCost)
		return v
	}
	calls := map[string]any{
		callTruth:     func(v, nodes any) bool { return turn(v, nodes) == true },
		callValue:     turn,
		" ==":         m.equal,
		" in":         m.in,
		" +":          m.add,
		" <":          order(func(order int) bool { return order < 0 }),
		" <=":         order(func(order int) bool { return order <= 0 }),
		" >":          order(func(order int) bool { return order > 0 }),
		" >=":         order(func(order int) bool { return order >= 0 }),
		" contains":   texts(strings.Contains),
		" startsWith": texts(strings.HasPrefix),
		" endsWith":   texts(strings.HasSuffix),
		" matches": func(v, pattern any) bool {
			text, ok := v.(string)
			m.spend(16 * len(text))
			return ok && pattern.(*regexp.Regexp).MatchString(text)
		},
		" %":        m.operator(rest),
		" negative": m.alone(negative),

		callPart:      m.part,
		callPartOfAny: m.partOfAny,
		callSlice:     m.slice,
		callBounds:    boundsOf,
		callList:      m.list,
		callBound:     bound,

		"len":    m.length,
		"int":    m.whole,
		"float":  m.float,
		"string": m.text,
		"abs":    m.alone(absolute),
		"ceil":   m.rounded("ceil", math.Ceil),
		"floor":  m.rounded("floor", math.Floor),
		"round":  m.rounded("round", math.Round),
		"min":    m.best("min", -1),
		"max":    m.best("max", 1),
	}
	for sign, do := range operators {
		calls[" "+sign] = m.operator(do)
	}
	return calls
}

// textCalls are those of texts. The library has the types of what they get, and checks them where
// it knows them.
func (m *meter) textCalls() conf.FunctionsTable {
	table := conf.FunctionsTable{}
	add := func(name string, shape any, do func(texts ...string) any) {
		table[name] = &builtin.Function{
			Name:  name,
			Types: []reflect.Type{reflect.TypeOf(shape)},
			Func: func(args ...any) (any, error) {
				var texts [2]string
				for i, a := range args {
					var ok bool
					if texts[i], ok = a.(string); !ok {
						return nil, unfit(name, a)
					}
				}
				return do(texts[:len(args)]...), nil
			},
		}
	}
	for name, change := range map[string]func(string) string{
		"lower": strings.ToLower, "upper": strings.ToUpper, "trim": strings.TrimSpace,
	} {
		add(name, (func(string) string)(nil), func(texts ...string) any {
			m.spend(4 * len(texts[0]))
			return change(texts[0])
		})
	}
	add("split", (func(string, string) []string)(nil), func(texts ...string) any {
		if texts[1] == "" {
			panic("split has no use for an empty text")
		}
		m.spend(len(texts[0]) + callCost*strings.Count(texts[0], texts[1]))
		return strings.Split(texts[0], texts[1])
	})
	add("indexOf", (func(string, string) int)(nil), func(texts ...string) any {
		m.spend(len(texts[0]))
		at := strings.Index(texts[0], texts[1])
		return min(at, utf8.RuneCountInString(texts[0][:max(at, 0)]))
	})
	return table
}

// equal compares any two values, lists and maps item by item.
func (m *meter) equal(a, b any) bool {
	m.spend(0)
	if order, ok := compare(a, b); ok {
		return order == 0
	}
	if x, ok := listOf(a); ok {
		y, ok := listOf(b)
		if !ok || x.Len() != y.Len() {
			return false
		}
		for i := range x.Len() {
			if !m.equal(x.Index(i).Interface(), y.Index(i).Interface()) {
				return false
			}
		}
		return true
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		return b == x
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for key, v := range x {
			if w, ok := y[key]; !ok || !m.equal(v, w) {
				return false
			}
		}
		return true
	}
	return false
}

// in says whether a list has a value, or a map a key.
func (m *meter) in(a, b any) bool {
	m.spend(0)
	if named, ok := b.(map[string]any); ok {
		if key, ok := a.(string); ok {
			_, ok = named[key]
			return ok
		}
	}
	if list, ok := listOf(b); ok {
		for i := range list.Len() {
			if m.equal(a, list.Index(i).Interface()) {
				return true
			}
		}
	}
	return false
}

// length counts the characters of a text, or the items of a list or a map.
func (m *meter) length(v any) int {
	if text, ok := v.(string); ok {
		m.spend(len(text))
		return utf8.RuneCountInString(text)
	}
	m.spend(0)
	if named, ok := v.(map[string]any); ok {
		return len(named)
	}
	list, ok := listOf(v)
	if !ok {
		panic(unfit("len", v))
	}
	return list.Len()
}

// text is a text, a number, true or false as a text: as JSON has it, and so templates.
func (m *meter) text(v any) string {
	m.spend(0)
	switch x := v.(type) {
	case string:
		return x
	case int, huge, bool:
		return fmt.Sprint(x)
	case float64:
		var room [9]byte
		out, _, err := msgpack.AppendJSON(nil, msgpack.AppendFloat64(room[:0], x), nil)
		if err != nil {
			panic(err)
		}
		return string(out)
	}
	panic(unfit("string", v))
}
