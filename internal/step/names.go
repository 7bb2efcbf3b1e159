// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
)

// merge takes fields into an event: the last one of that name gets the new value, others stand at
// the end.
type merge struct {
	e    *event
	from int    // of room: what flatten makes
	seen uint64 // signs of the names, while they are few
	free int    // how many more names the table has room for; 0: it is not in use
}

// sign is a bit that equal names have, and of a few others hardly any.
func sign(name []byte) uint64 {
	n := len(name)
	if n == 0 {
		return 1
	}
	return 1 << ((uint(n) + 7*uint(name[0]) + 5*uint(name[n/2]) + 3*uint(name[n-1])) & 63)
}

func newMerge(e *event) merge {
	m := merge{e: e}
	for i := range e.fields[:min(len(e.fields), manyFields)] {
		if f := &e.fields[i]; f.name != nil {
			m.seen |= sign(f.name)
		}
	}
	return m
}

// add takes a field. Its name may be none.
func (m *merge) add(key, value []byte) {
	text, ok := nameOf(key)
	if !ok {
		m.e.fields = append(m.e.fields, field{key: key, value: value})
		return
	}
	if i := m.place(text); i >= 0 {
		m.e.fields[i].put(value)
		return
	}
	m.e.fields = append(m.e.fields, field{name: text, key: key, value: value})
}

// place returns the last field of a name; -1: there is none, and the next field is to be it.
func (m *merge) place(text []byte) int {
	fields := m.e.fields
	if len(fields) <= manyFields {
		bit := sign(text)
		if m.seen&bit == 0 {
			m.seen |= bit
			return -1
		}
		for i := len(fields) - 1; i >= 0; i-- {
			if f := &fields[i]; f.name != nil && bytes.Equal(f.name, text) {
				return i
			}
		}
		return -1
	}
	name := func(i int) []byte { return fields[i].name }
	if m.free == 0 {
		m.free = 3 * len(fields)
		m.e.names.reset(4 * len(fields))
		for i := range fields {
			if fields[i].name != nil {
				*m.e.names.slot(fields[i].name, name) = uint32(i + 1)
			}
		}
	}
	slot := m.e.names.slot(text, name)
	if *slot > 0 {
		return int(*slot - 1)
	}
	*slot = uint32(len(fields) + 1)
	m.free--
	return -1
}

// signs are those of the names of a map's pairs; twice: one may be there twice.
func signs(pairs int, rest []byte) (seen uint64, twice bool) {
	if pairs > manyFields {
		return 0, true
	}
	for range pairs {
		key, v := pair(rest)
		if key == nil {
			return 0, true
		}
		rest = rest[len(key)+len(v):]
		if text, ok := nameOf(key); ok {
			bit := sign(text)
			twice = twice || seen&bit != 0
			seen |= bit
		}
	}
	return seen, twice
}

// repeats says whether a name stands in a map twice.
func (e *event) repeats(value []byte) bool {
	pairs, rest, _ := isMap(value)
	e.names.reset(pairs)
	name := func(at int) []byte {
		text, _ := nameOf(value[at : at+size(value[at:])])
		return text
	}
	for range pairs {
		key, v := pair(rest)
		if key == nil {
			return false
		}
		at := len(value) - len(rest)
		rest = rest[len(key)+len(v):]
		text, ok := nameOf(key)
		if !ok {
			continue
		}
		slot := e.names.slot(text, name)
		if *slot > 0 {
			return true
		}
		*slot = uint32(at + 1)
	}
	return false
}
