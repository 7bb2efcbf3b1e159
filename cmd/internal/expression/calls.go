// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/vm/runtime"
)

// A meter is what one evaluation may still cost.
type meter struct{ left int }

// Costs: of an evaluation, of a call, and of a node of what a loop does at each turn. A byte costs
// 1.
const (
	maxCost  = 64 << 20
	callCost = 64
	nodeCost = 16
)

var errCost = errors.New("it would take too long")

// spend panics, as all calls do that fail: the evaluation ends with that as its error.
func (m *meter) spend(n int) {
	if m.left -= n + callCost; m.left < 0 {
		panic(errCost)
	}
}

// huge is a whole number that an int cannot be. It is compared; nothing is computed with it.
type huge uint64

// known is a value as the calls know it.
func known(v any) any {
	if u, ok := v.(uint64); ok {
		return huge(u)
	}
	return v
}

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
	return map[string]any{
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
		"len":    m.length,
		"int":    m.whole,
		"float":  m.float,
		"string": m.text,
		"abs":    m.abs,
		"ceil":   m.rounded("ceil", math.Ceil),
		"floor":  m.rounded("floor", math.Floor),
		"round":  m.rounded("round", math.Round),
		"min":    m.best("min", -1),
		"max":    m.best("max", 1),
	}
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
		return strings.Index(texts[0], texts[1])
	})
	return table
}

// unfit says that a function has no use for a value, which is not shown.
func unfit(name string, v any) error { return fmt.Errorf("%s has no use for %s", name, kindOf(v)) }

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "true or false"
	case int, float64, huge:
		return "a number"
	case string:
		return "a text"
	case map[string]any:
		return "a map"
	case []any, []int, []float64, []string:
		return "a list"
	}
	return "such a value"
}

// compare compares two texts, or two numbers as what they are, not as what one of them becomes in
// the other's form.
func compare(a, b any) (order int, ok bool) {
	if x, ok := a.(string); ok {
		y, also := b.(string)
		return strings.Compare(x, y), also
	}
	switch x := a.(type) {
	case int:
		switch y := b.(type) {
		case int:
			return cmp.Compare(x, y), true
		case huge:
			return -1, true
		case float64:
			return compareFloat(x, y)
		}
	case huge:
		switch y := b.(type) {
		case int:
			return 1, true
		case huge:
			return cmp.Compare(x, y), true
		case float64:
			switch {
			case math.IsNaN(y):
				return 0, false
			case y >= 1<<64:
				return -1, true
			case y < 1<<63:
				return 1, true
			}
			return cmp.Compare(x, huge(y)), true // which is whole
		}
	case float64:
		if y, ok := b.(float64); ok {
			return cmp.Compare(x, y), x == x && y == y
		}
		switch b.(type) {
		case int, huge:
			order, ok := compare(b, a)
			return -order, ok
		}
	}
	return 0, false
}

func compareFloat(x int, y float64) (int, bool) {
	switch {
	case math.IsNaN(y):
		return 0, false
	case y >= 1<<63:
		return -1, true
	case y < -1<<63:
		return 1, true
	}
	whole := math.Trunc(y)
	if order := cmp.Compare(int64(x), int64(whole)); order != 0 {
		return order, true
	}
	return -cmp.Compare(y, whole), true
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

// listOf is a list.
func listOf(v any) (reflect.Value, bool) {
	switch v.(type) {
	case []any, []int, []float64, []string:
		return reflect.ValueOf(v), true
	}
	return reflect.Value{}, false
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

// add adds numbers, and puts texts behind one another.
func (m *meter) add(a, b any) any {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			m.spend(len(x) + len(y))
			return x + y
		}
	case int, float64:
		switch b.(type) {
		case int, float64:
			m.spend(0)
			return runtime.Add(a, b)
		}
	}
	panic(fmt.Errorf("+ has no use for %s and %s", kindOf(a), kindOf(b)))
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

func (m *meter) whole(v any) int {
	m.spend(0)
	switch x := v.(type) {
	case int:
		return x
	case float64:
		if x >= math.MinInt && x < -float64(math.MinInt) {
			return int(x)
		}
	case string:
		if n, err := strconv.Atoi(x); err == nil {
			return n
		}
	}
	panic(unfit("int", v))
}

func (m *meter) float(v any) float64 {
	m.spend(0)
	switch x := v.(type) {
	case int:
		return float64(x)
	case float64:
		return x
	case string:
		if f, err := strconv.ParseFloat(x, 64); err == nil {
			return f
		}
	}
	panic(unfit("float", v))
}

// text is a text, a number, true or false as a text.
func (m *meter) text(v any) string {
	m.spend(0)
	switch x := v.(type) {
	case string:
		return x
	case int, float64, huge, bool:
		return fmt.Sprint(x)
	}
	panic(unfit("string", v))
}

func (m *meter) abs(v any) any {
	m.spend(0)
	switch x := v.(type) {
	case int:
		return max(x, -x)
	case float64:
		return math.Abs(x)
	}
	panic(unfit("abs", v))
}

func (m *meter) rounded(name string, round func(float64) float64) func(v any) any {
	return func(v any) any {
		m.spend(0)
		switch x := v.(type) {
		case int:
			return x
		case float64:
			return round(x)
		}
		panic(unfit(name, v))
	}
}

// best is the less or the greater one of two, by the sign.
func (m *meter) best(name string, sign int) func(a, b any) any {
	return func(a, b any) any {
		m.spend(0)
		order, ok := compare(a, b)
		switch {
		case !ok:
			panic(fmt.Errorf("%s has no use for %s and %s", name, kindOf(a), kindOf(b)))
		case order*sign < 0:
			return b
		}
		return a
	}
}
