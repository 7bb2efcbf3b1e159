// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// part is a value of a map, an item of a list, or a character of a text. A name in what is no map
// is missing, as it is where a path of a condition leads through such a value.
func (m *meter) part(v, key any) any {
	m.spend(0)
	named, ok := v.(map[string]any)
	name, text := key.(string)
	switch {
	case text:
		return named[name]
	case ok && key == nil:
		return nil
	case ok:
		panic(fmt.Errorf("[] has no use for a map and %s", kindOf(key)))
	}
	at := index("[]", key)
	if items, ok := v.([]any); ok {
		return items[within(at, len(items))]
	}
	if text, ok := v.(string); ok {
		m.spend(reach(text, at))
		if begin := offset(text, at); at >= 0 && begin < len(text) { // the usual case: no need to count all
			return text[begin : begin+offset(text[begin:], 1)]
		}
		n := utf8.RuneCountInString(text)
		at = within(at, n)
		return characters(text, n, at, at+1)
	}
	list, ok := listOf(v)
	if !ok {
		panic(fmt.Errorf("[] has no use for %s and a number", kindOf(v)))
	}
	return list.Index(within(at, list.Len())).Interface()
}

// partOfAny is part for what may be missing.
func (m *meter) partOfAny(v, key any) any {
	if v == nil {
		return nil
	}
	return m.part(v, key)
}

// far is further than any index, and from its negative to itself an int can count.
const far = math.MaxInt/4 + 1

// index is a number that counts items or characters.
func index(name string, v any) int {
	switch x := v.(type) {
	case int:
		return x
	case huge:
		return math.MaxInt
	case float64:
		if x == x {
			return int(max(-far, min(x, far)))
		}
	}
	panic(unfit(name, v))
}

// within is an index of n items; those below 0 count from the end.
func within(at, n int) int {
	i := at
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		panic(fmt.Errorf("index %d of %d is out of range", at, n))
	}
	return i
}

// bounds are those of a slice.
type bounds struct{ from, to int }

func boundsOf(from, to any) any { return bounds{index("[:]", from), index("[:]", to)} }

// slice is the part of a text or a list between two bounds.
func (m *meter) slice(v, between any) any {
	m.spend(0)
	b := between.(bounds)
	limits := func(n int) (from, to int) {
		if from, to = b.from, b.to; from < 0 {
			from += n
		}
		if to < 0 {
			to += n
		}
		to = max(0, min(to, n))
		return max(0, min(from, to)), to
	}
	if text, ok := v.(string); ok {
		if b.from >= 0 && b.to >= 0 { // what is behind is not looked at
			m.spend(reach(text, b.to))
			text = text[:offset(text, b.to)]
		} else {
			m.spend(len(text))
		}
		n := utf8.RuneCountInString(text)
		from, to := limits(n)
		return characters(text, n, from, to)
	}
	list, ok := listOf(v)
	if !ok {
		panic(unfit("[:]", v))
	}
	return list.Slice(limits(list.Len())).Interface()
}

// characters are some of the n of a text.
func characters(text string, n, from, to int) string {
	if n == len(text) {
		return text[from:to]
	}
	begin := offset(text, from)
	return text[begin : begin+offset(text[begin:], to-from)]
}

// reach is how many bytes of a text are looked at for so many characters, at most.
func reach(text string, n int) int {
	if n < 0 || n > len(text)/utf8.UTFMax {
		return len(text)
	}
	return n * utf8.UTFMax
}

// offset is how many bytes the first n characters of a text have; 0 for what counts from the end.
func offset(text string, n int) (at int) {
	if n >= len(text) {
		return len(text)
	}
	for at < len(text) && n > 0 {
		n--
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// list is a list that a loop goes through.
func (m *meter) list(v, name any) any {
	if _, ok := listOf(v); !ok {
		panic(unfit(name.(string), v))
	}
	return v
}

// bound is one of a list of all numbers between two.
func bound(v any) int {
	i := index("..", v)
	if i > far || i < -far {
		panic(fmt.Errorf(".. has no use for %d", i))
	}
	return i
}
