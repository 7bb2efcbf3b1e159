// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"iter"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

// A Record is what an event says: a MessagePack map, as it came. It is decoded only on demand.
type Record []byte

// All returns an iterator over the times and records of the chunk's events. The records alias
// Entries; nothing is allocated. Of a chunk that a Server hands on every entry is good; of one that
// was not checked, see Parse, the iteration ends before the first that is none. [ReadEntries] tells
// of that, and has metadata too.
func (c *Chunk) All() iter.Seq2[time.Time, Record] {
	return func(yield func(time.Time, Record) bool) {
		r := ReadEntries(c.Entries)
		for e, ok := r.Next(); ok; e, ok = r.Next() {
			if !yield(e.Time(), Record(e.Record)) {
				return
			}
		}
	}
}

// Decode stores the record in what v points to, as encoding/json does: an any, a map, or a struct,
// whose fields are found by their tags "log", "json", or their names, byte for byte. Into an any go
// int64 (uint64 where that is too small), float64, string, []byte, bool, nil, []any,
// map[string]any, and a time.Time for an EventTime; a time.Time takes text of RFC 3339 too. An
// extension value of another type becomes the text that it has in JSON.
//
// What does not fit into its field, such as a number that is too large, is left out and everything
// else is stored; the error says what and where, of the first. Nothing that is stored aliases the
// record.
func (r Record) Decode(v any) error {
	if err := record.Decode(r, v, AppendExtJSON); err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	return nil
}

// Get returns the value of a key, at the top level of the record; of a repeated key the last. It
// looks at no more than keys, and allocates nothing.
func (r Record) Get(key string) (v Value, ok bool) {
	t, at, err := msgpack.ReadToken(r)
	if err != nil || t.Kind != msgpack.KindMap {
		return nil, false
	}
	for range t.Len {
		name, _, n, err := msgpack.ReadBytes(r[at:])
		if err != nil { // a key of another kind
			if n, err = msgpack.Skip(r[at:]); err != nil {
				return v, ok
			}
			name = nil
		}
		at += n
		if n, err = msgpack.Skip(r[at:]); err != nil {
			return v, ok
		}
		if name != nil && string(name) == key {
			v, ok = Value(r[at:at+n:at+n]), true
		}
		at += n
	}
	return v, ok
}

// A Value is a value of a record: one of MessagePack, as it came.
type Value []byte

// Text returns the bytes of a str or bin. They alias the value.
func (v Value) Text() ([]byte, bool) {
	p, _, n, err := msgpack.ReadBytes(v)
	return p, err == nil && n == len(v)
}

// Int returns an integer that an int64 holds.
func (v Value) Int() (int64, bool) { return wire.Number(v) }

// Decode stores the value in what p points to, see [Record.Decode].
func (v Value) Decode(p any) error { return Record(v).Decode(p) }

// AppendJSON appends the value as JSON, see [Record.AppendJSON].
func (v Value) AppendJSON(dst []byte) ([]byte, error) { return Record(v).AppendJSON(dst) }

// AppendJSON appends the record as one line of JSON text, see [AppendExtJSON].
func (r Record) AppendJSON(dst []byte) ([]byte, error) {
	out, n, err := msgpack.AppendJSON(dst, r, AppendExtJSON)
	if err == nil && n != len(r) {
		err = fmt.Errorf("%w: %d bytes behind the record", ErrMalformed, len(r)-n)
	}
	if err != nil {
		return dst, err
	}
	return out, nil
}
