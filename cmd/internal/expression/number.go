// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

// floatOf is a number as a float64.
func floatOf(v any) (float64, bool) {
	switch x := v.(type) {
	case int:
		return float64(x), true
	case float64:
		return x, true
	case huge:
		return float64(x), true
	}
	return 0, false
}

// floats are the operands of what is computed with floats.
func floats(operator string, a, b any) (x, y float64) {
	x, ok := floatOf(a)
	y, also := floatOf(b)
	if !ok || !also {
		panic(fmt.Errorf("%s has no use for %s and %s", operator, kindOf(a), kindOf(b)))
	}
	return x, y
}

// operators are those of numbers alone that fail on none.
var operators = map[string]func(a, b any) any{
	"-": difference, "*": product, "/": quotient, "**": power, "^": power,
}

// operator is an operator that costs something.
func (m *meter) operator(do func(a, b any) any) func(a, b any) any {
	return func(a, b any) any {
		m.spend(0)
		return do(a, b)
	}
}

func (m *meter) alone(do func(v any) any) func(v any) any {
	return func(v any) any {
		m.spend(0)
		return do(v)
	}
}

// add adds numbers, and puts texts behind one another. Here as below, what no int can be is a
// float64: a sum that began anew at the other end would be wrong without a word.
func (m *meter) add(a, b any) any {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			m.spend(len(x) + len(y))
			return x + y
		}
	}
	m.spend(0)
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok {
			if sum := x + y; (sum > x) == (y > 0) {
				return sum
			}
		}
	}
	x, y := floats("+", a, b)
	return x + y
}

func difference(a, b any) any {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok {
			if left := x - y; (left < x) == (y > 0) {
				return left
			}
		}
	}
	x, y := floats("-", a, b)
	return x - y
}

func product(a, b any) any {
	if x, ok := a.(int); ok {
		if y, ok := b.(int); ok {
			if x == 0 || y == 0 {
				return 0
			}
			// Only of MinInt by -1 the division is wrong as well.
			if all := x * y; all/y == x && (y != -1 || x != math.MinInt) {
				return all
			}
		}
	}
	x, y := floats("*", a, b)
	return x * y
}

func quotient(a, b any) any {
	x, y := floats("/", a, b)
	return x / y
}

// rest is what a division leaves, with the sign of a.
func rest(a, b any) any {
	y, whole := b.(int)
	if whole && y != 0 {
		switch x := a.(type) {
		case int:
			return x % y
		case huge:
			if y > 0 {
				return int(x % huge(y))
			}
		}
	}
	f, g := floats("%", a, b)
	if g == 0 {
		panic("% has no use for 0 as the divisor")
	}
	return math.Mod(f, g)
}

func power(a, b any) any {
	x, y := floats("**", a, b)
	return math.Pow(x, y)
}

func negative(v any) any {
	if x, ok := v.(int); ok && x != math.MinInt {
		return -x
	}
	x, ok := floatOf(v)
	if !ok {
		panic(unfit("-", v))
	}
	return -x
}

func absolute(v any) any {
	switch x := v.(type) {
	case int:
		if x < 0 {
			return negative(x)
		}
		return x
	case huge:
		return x
	case float64:
		return math.Abs(x)
	}
	panic(unfit("abs", v))
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
	case string:
		if f, err := strconv.ParseFloat(x, 64); err == nil {
			return f
		}
	default:
		if f, ok := floatOf(v); ok {
			return f
		}
	}
	panic(unfit("float", v))
}

func (m *meter) rounded(name string, round func(float64) float64) func(v any) any {
	return m.alone(func(v any) any {
		switch x := v.(type) {
		case int, huge:
			return x
		case float64:
			return round(x)
		}
		panic(unfit(name, v))
	})
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
