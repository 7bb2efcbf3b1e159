// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"iter"
	"time"

	"github.com/spillwaylog/spillway/internal/record"
	"github.com/spillwaylog/spillway/msgpack"
)

// A Record is what an event says: a MessagePack map, as it came. It is decoded only on demand.
type Record []byte

// All returns an iterator over the times and records of the chunk's events. The records alias Entries; nothing is allocated. Of a chunk that a
// Server hands on every entry is good; of one that was not checked, see Parse, the iteration ends before the first that is none: whoever
// has to know uses [ReadEntries], which has metadata too.
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

// Decode stores the record in what v points to: an any, a map[string]any, or a struct, whose fields are found by their tags "log" or "json".
func (r Record) Decode(v any) error {
	if err := record.Decode(r, v, AppendExtJSON); err != nil {
		return fmt.Errorf("forward: record: %w", err)
	}
	return nil
}

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
