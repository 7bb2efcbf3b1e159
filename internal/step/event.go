// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"

	"github.com/spillwaylog/spillway/msgpack"
)

// An event is an entry with its fields found, while steps change it.
//
//	entry   [ time, { "level": "INFO", "user": {…}, … } ]
//	        └─head─┘  └────field─────┘ └──field───┘
//
// What no step changes stays where it is in the entry; what is made here lies in room. Nothing is
// decoded.
type event struct {
	tag    string
	from   string  // the tag that it came with
	raw    []byte  // the entry as it came
	head   []byte  // of raw: all before the record; or a new one
	fields []field // of the record, in their order
	room   []byte
	dirty  bool // it is not raw any more

	at     uint64 // where its record of the journal ends
	index  int    // in that record
	serial uint64 // other events have others

	maxBytes int   // bytes that it may have
	failed   error // of the condition that runs
	scratch  []byte
	names    nameTable         // of fields, while a step looks them up
	tags     map[string]string // made by steps, so that each is allocated once
}

// A field is a pair of the record.
type field struct {
	name  []byte // nil: the key is neither str nor bin, or the field was removed
	key   []byte
	value []byte
	both  []byte // key and value, where they lie together; nil: they do not
	gone  bool
}

// errEntry says that bytes are no entry.
var errEntry = errors.New("this is no entry")

// maxFields is how many fields a record may have, at the top: each takes a hundred bytes of memory
// while steps run, and may have been two.
const maxFields = 1 << 16

// errFields says that a record has more of them than steps take.
var errFields = errors.New("the record has more than 65,536 fields")

// read takes the entry at the start of b, and returns its length.
func (e *event) read(tag string, b []byte) (int, error) {
	e.tag, e.from, e.dirty = tag, tag, false
	e.fields, e.room = e.fields[:0], e.room[:0]
	if len(b) == 0 || b[0] != 0x92 {
		t, n, err := msgpack.ReadToken(b)
		if err != nil || t.Kind != msgpack.KindArray || t.Len != 2 {
			return 0, errEntry
		}
		return e.pairs(b, n)
	}
	return e.pairs(b, 1)
}

func (e *event) pairs(b []byte, at int) (int, error) {
	n := size(b[at:])
	if n == 0 || at+n >= len(b) {
		return 0, errEntry
	}
	at += n
	e.head = b[:at:at]
	pairs, rest, ok := isMap(b[at:])
	if !ok {
		return 0, errEntry
	}
	if pairs > maxFields {
		n := size(b[at:])
		if n == 0 {
			return 0, errEntry
		}
		e.raw = b[: at+n : at+n]
		return at + n, errFields
	}
	at = len(b) - len(rest)
	for range pairs {
		key, value := pair(b[at:])
		if key == nil {
			return 0, errEntry
		}
		end := at + len(key) + len(value)
		f := field{key: key, value: value, both: b[at:end:end]}
		if text, ok := nameOf(key); ok {
			f.name = text
		}
		e.fields = append(e.fields, f)
		at = end
	}
	e.raw = b[:at:at]
	return at, nil
}

// Bounds of the memory that is kept for the next event.
const (
	keepsFields = 1 << 12
	keepsBytes  = 1 << 20
)

// shrink lets go of memory that a large event took.
func (e *event) shrink() {
	if cap(e.fields) > keepsFields {
		e.fields = nil
	}
	if cap(e.room) > keepsBytes {
		e.room = nil
	}
	if cap(e.scratch) > keepsBytes {
		e.scratch = nil
	}
	if cap(e.names.slots) > 4*keepsFields {
		e.names.slots = nil
	}
}

// append appends the entry as it is now.
func (e *event) append(dst []byte) []byte {
	if !e.dirty {
		return append(dst, e.raw...)
	}
	n := 0
	for i := range e.fields {
		if !e.fields[i].gone {
			n++
		}
	}
	dst = append(dst, e.head...)
	dst = msgpack.AppendMapHeader(dst, n)
	for i := range e.fields {
		switch f := &e.fields[i]; {
		case f.gone:
		case f.both != nil:
			dst = append(dst, f.both...)
		default:
			dst = append(dst, f.key...)
			dst = append(dst, f.value...)
		}
	}
	return dst
}

// size is how many bytes append appends, roughly.
func (e *event) size() int {
	if !e.dirty {
		return 0
	}
	n := len(e.head)
	for i := range e.fields {
		n += len(e.fields[i].key) + len(e.fields[i].value)
	}
	return n
}

// settle is called between two changes: room keeps what the first one made and the next one has
// replaced, and has that only until it is twice as much as an event may have.
func (e *event) settle() error {
	if len(e.room) <= 2*e.maxBytes {
		return nil
	}
	n := e.size()
	if n > e.maxBytes {
		return errTooLarge
	}
	room := make([]byte, 0, n)
	move := func(b []byte) []byte {
		from := len(room)
		room = append(room, b...)
		return room[from:len(room):len(room)]
	}
	if e.dirty {
		e.head = move(e.head)
	}
	for i := range e.fields {
		f := &e.fields[i]
		if f.gone || f.both != nil { // the latter is of raw
			continue
		}
		if f.key, f.value = move(f.key), move(f.value); f.name != nil {
			f.name, _ = nameOf(f.key)
		}
	}
	e.room = room
	return nil
}

// find returns the index of the last field with a name, or -1.
func (e *event) find(n *name) int {
	for i := len(e.fields) - 1; i >= 0; i-- {
		if f := &e.fields[i]; string(f.name) == n.text && f.name != nil {
			return i
		}
	}
	return -1
}

// get returns the value at a path, nil if there is none.
func (e *event) get(p path) []byte {
	i := e.find(&p[0])
	if i < 0 {
		return nil
	}
	value := e.fields[i].value
	for i := 1; i < len(p) && value != nil; i++ {
		value = member(value, &p[i])
	}
	return value
}

// drop removes a field.
func (f *field) drop() { *f = field{gone: true} }

// put gives a field another value.
func (f *field) put(value []byte) { f.value, f.both = value, nil }

// A change is what becomes of a value: none, a new one, which may lie in room, or nothing.
type change uint8

const (
	kept change = iota
	changed
	removed
)

// A doer decides what becomes of a value. What it returns may lie in scratch.
type doer func(e *event, value []byte) ([]byte, change)

// each has do decide what becomes of every field that a path names, also of those that are there
// twice.
func (e *event) each(p path, do doer) {
	for i := range e.fields {
		f := &e.fields[i]
		if f.name == nil || string(f.name) != p[0].text {
			continue
		}
		from := len(e.room)
		switch e.rewrite(f.value, p[1:], do) {
		case changed:
			f.put(e.room[from:len(e.room):len(e.room)])
			e.dirty = true
		case removed:
			f.drop()
			e.dirty = true
		}
	}
}

// longestHeader is the longest header of a map.
const longestHeader = 5

// rewrite appends what a value becomes to room, if it changes.
func (e *event) rewrite(value []byte, p path, do doer) change {
	if len(p) == 0 {
		v, how := do(e, value)
		if how == changed {
			e.room = append(e.room, v...)
		}
		return how
	}
	pairs, rest, ok := isMap(value)
	if !ok || member(value, &p[0]) == nil {
		return kept
	}
	start := len(e.room)
	e.room = append(e.room, make([]byte, longestHeader)...)
	n, how := 0, kept
	for range pairs {
		key, v := pair(rest)
		if key == nil {
			break
		}
		rest = rest[len(key)+len(v):]
		at := len(e.room)
		e.room = append(e.room, key...)
		inner := kept
		if text, ok := nameOf(key); ok && string(text) == p[0].text {
			inner = e.rewrite(v, p[1:], do)
		}
		switch inner {
		case kept:
			e.room = append(e.room, v...)
			n++
		case changed:
			how = changed
			n++
		case removed:
			how = changed
			e.room = e.room[:at]
		}
	}
	if how == kept {
		e.room = e.room[:start]
		return kept
	}
	var header [longestHeader]byte
	h := copy(e.room[start:], msgpack.AppendMapHeader(header[:0], n))
	e.room = e.room[:start+h+copy(e.room[start+h:], e.room[start+longestHeader:])]
	return changed
}

// store puts bytes into room.
func (e *event) store(parts ...[]byte) []byte {
	from := len(e.room)
	for _, p := range parts {
		e.room = append(e.room, p...)
	}
	return e.room[from:len(e.room):len(e.room)]
}

// maxNesting is how deep a field may nest: its record is a level more.
const maxNesting = msgpack.DefaultDepth - 1

// errDeep says that an event would be nested deeper than anything that reads it takes.
var errDeep = errors.New("it would nest too deep")

// set gives the field at a path a value; it is the last one if it is new. An error says that the
// path leads through something that is no map.
func (e *event) set(p path, value []byte) (err error) {
	i := e.find(&p[0])
	switch {
	case len(p) == 1:
	case i < 0:
		value = e.wrap(p[1:], value)
	default:
		value, err = e.setIn(e.fields[i].value, p[1:], value)
	}
	if err == nil && len(p) > 1 {
		if _, deep := (msgpack.Limits{Depth: maxNesting}).Skip(value); deep != nil {
			err = errDeep
		}
	}
	if err != nil {
		return err
	}
	if i < 0 {
		i = len(e.fields)
		e.fields = append(e.fields, field{name: p[0].bytes(), key: p[0].key})
	}
	e.fields[i].put(value)
	e.dirty = true
	return nil
}

// wrap makes maps of one pair each around a value.
func (e *event) wrap(p path, value []byte) []byte {
	if len(p) == 0 {
		return value
	}
	inner := e.wrap(p[1:], value)
	return e.store([]byte{0x81}, p[0].key, inner)
}

// errNoMap says that a path leads through something that is no map.
var errNoMap = errors.New("what it leads through is no map")

// setIn is set inside of a value.
func (e *event) setIn(value []byte, p path, to []byte) ([]byte, error) {
	if len(p) == 0 {
		return to, nil
	}
	pairs, rest, ok := isMap(value)
	if !ok {
		return nil, errNoMap
	}
	var header [longestHeader]byte
	last := -1
	from := rest
	for i := range pairs {
		key, v := pair(rest)
		if key == nil {
			return nil, errNoMap
		}
		if text, ok := nameOf(key); ok && string(text) == p[0].text {
			last = i
		}
		rest = rest[len(key)+len(v):]
	}
	if last < 0 {
		inner := e.wrap(p[1:], to)
		return e.store(msgpack.AppendMapHeader(header[:0], pairs+1), from[:len(from)-len(rest)], p[0].key, inner), nil
	}
	rest = from
	for range last {
		key, v := pair(rest)
		rest = rest[len(key)+len(v):]
	}
	key, v := pair(rest)
	inner, err := e.setIn(v, p[1:], to)
	if err != nil {
		return nil, err
	}
	before, behind := from[:len(from)-len(rest)+len(key)], rest[len(key)+len(v):]
	end := behind
	for range pairs - last - 1 {
		key, v := pair(end)
		end = end[len(key)+len(v):]
	}
	return e.store(msgpack.AppendMapHeader(header[:0], pairs), before, inner, behind[:len(behind)-len(end)]), nil
}

// errTooLarge says that a step makes too much of an event.
var errTooLarge = errors.New("the event would be too large")
