// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"reflect"
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

// huge is a whole number that an int cannot be. It is compared as what it is, and computed with as
// a float64.
type huge uint64

// known is a value as the calls know it.
func known(v any) any {
	if u, ok := v.(uint64); ok {
		return huge(u)
	}
	return v
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

// listOf is a list.
func listOf(v any) (reflect.Value, bool) {
	switch v.(type) {
	case []any, []int, []float64, []string:
		return reflect.ValueOf(v), true
	}
	return reflect.Value{}, false
}
