// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/msgpack"
)

// A Flatten makes fields of what is in maps.
type Flatten struct {
	Fields    []string `help:"Fields at the top of the record whose maps are flattened; none: all."`
	Separator string   `help:"What stands between the names; a dot where nothing is said."`
}

// A Nest moves fields into a map.
type Nest struct {
	Fields []string `help:"Fields at the top of the record."`
	Prefix string   `help:"Or what the names of such fields begin with, which they lose."`
	Under  string   `help:"The field with the map, which is made where it is missing." required:"true"`
}

// oneName reads the name of a field at the top of the record.
func oneName(text string) (name, error) {
	p, err := parsePath(text)
	if err == nil && len(p) > 1 {
		err = fmt.Errorf("%s: it is a field at the top of the record; a name with a dot in it stands in backquotes",
			text)
	}
	if err != nil {
		return name{}, err
	}
	return p[0], nil
}

func newFlatten(s *Flatten, wrong func(error, ...any)) func(*event) error {
	var names []name
	for i, text := range s.Fields {
		n, err := oneName(text)
		if err != nil {
			wrong(err, "fields", i)
		}
		names = append(names, n)
	}
	separator := s.Separator
	if separator == "" {
		separator = "."
	}
	var maps []field
	return func(e *event) error {
		maps = maps[:0]
		for i := range e.fields { // first: what they become has no place among them
			f := &e.fields[i]
			if f.name == nil || len(names) > 0 && !named(names, f.name) {
				continue
			}
			if pairs, _, ok := isMap(f.value); ok && pairs > 0 {
				maps = append(maps, *f)
				f.drop()
				e.dirty = true
			}
		}
		m := newMerge(e)
		m.from = len(e.room)
		for i := range maps {
			pairs, rest, _ := isMap(maps[i].value)
			if err := m.flatten(maps[i].name, separator, pairs, rest); err != nil {
				return err
			}
		}
		return nil
	}
}

func named(names []name, text []byte) bool {
	for i := range names {
		if names[i].text == string(text) {
			return true
		}
	}
	return false
}

// flatten takes what is in a map. A map without anything in it stays one.
func (m *merge) flatten(prefix []byte, separator string, pairs int, rest []byte) error {
	for range pairs {
		key, value := pair(rest)
		if key == nil {
			return errEntry
		}
		rest = rest[len(key)+len(value):]
		text, ok := nameOf(key)
		if !ok {
			var err error
			if m.e.scratch, _, err = msgpack.AppendJSON(m.e.scratch[:0], key, nil); err != nil {
				return err
			}
			text = m.e.scratch
		}
		var header [longestHeader]byte
		h := msgpack.AppendStringHeader(header[:0], len(prefix)+len(separator)+len(text))
		full := m.e.store(h, prefix, []byte(separator), text)
		if len(m.e.room)-m.from > m.e.maxBytes || len(m.e.fields) > maxFields {
			return errTooLarge
		}
		if n, inside, ok := isMap(value); ok && n > 0 {
			if err := m.flatten(full[len(h):], separator, n, inside); err != nil {
				return err
			}
			continue
		}
		m.add(full, value)
	}
	return nil
}

func newNest(s *Nest, wrong func(error, ...any)) func(*event) error {
	var names []name
	for i, text := range s.Fields {
		n, err := oneName(text)
		if err != nil {
			wrong(err, "fields", i)
		}
		names = append(names, n)
	}
	if (len(names) == 0) == (s.Prefix == "") {
		wrong(errors.New("nest has fields, or a prefix"))
	}
	under, err := oneName(s.Under)
	if err != nil {
		wrong(err, "under")
	}
	prefix := []byte(s.Prefix)
	takes := func(f *field) bool {
		switch {
		case f.name == nil || string(f.name) == under.text:
			return false
		case len(prefix) > 0:
			return bytes.HasPrefix(f.name, prefix)
		}
		return named(names, f.name)
	}
	return func(e *event) error { return e.nest(under, len(prefix), takes) }
}

// nest moves fields into a map, and cuts the beginning of their names off.
func (e *event) nest(under name, cut int, takes func(*field) bool) error {
	at, moves := e.find(&under), 0
	for i := range e.fields {
		if takes(&e.fields[i]) {
			moves++
		}
	}
	if moves == 0 {
		return nil
	}
	var there int
	var old, inside []byte
	if at >= 0 {
		var ok bool
		old = e.fields[at].value
		if there, inside, ok = isMap(old); !ok {
			return fmt.Errorf("%s: %w", under.text, errNoMap)
		}
	}
	var header [longestHeader]byte
	from := len(e.room)
	e.room = append(append(e.room, msgpack.AppendMapHeader(header[:0], there+moves)...), inside...)
	moved := len(e.room)
	seen, twice := signs(there, inside)
	for i := range e.fields {
		f := &e.fields[i]
		if !takes(f) {
			continue
		}
		bit := sign(f.name[cut:])
		twice = twice || seen&bit != 0
		seen |= bit
		if cut > 0 {
			e.room = append(msgpack.AppendStringHeader(e.room, len(f.name)-cut), f.name[cut:]...)
		} else {
			e.room = append(e.room, f.key...)
		}
		e.room = append(e.room, f.value...)
		f.drop()
	}
	value := e.room[from:len(e.room):len(e.room)]
	if twice && e.repeats(value) {
		var err error
		if value, err = e.joined(old, moves, e.room[moved:]); err != nil {
			return err
		}
	}
	if _, err := (msgpack.Limits{Depth: maxNesting}).Skip(value); err != nil {
		return errDeep
	}
	return e.set(path{under}, value)
}
