// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// writeSize is about how many bytes are written at once, unless one message is larger: what a
// socket's buffer takes without a wait, and what stays in the processor's cache between being
// patched and being written.
const writeSize = 256 << 10

// blockSize is how long the block of each of so many connections is, if no message is longer.
func blockSize(connections int) int { return min(writeSize, max(8<<10, (64<<20)/connections)) }

// idChars is the length of a chunk id: base64 of 128 bits (docs/forward.md rule 45).
const idChars = 24

// A template is a row of encoded messages. It is made once a run; each connection has a block, with
// its own copy of the bytes.
type template struct {
	o      *Options
	bytes  []byte
	ends   []int    // of each message
	ids    []uint32 // where the id of each message stands; nil without acks
	stamps []stamp  // of all events; nil if they are compressed
	fresh  *entries // what each message has anew, compressed; nil otherwise

	eventSize int // bytes of time and record, on average
}

// entries are events as they stand in a packed message before it is compressed.
type entries struct {
	bytes  []byte
	stamps []stamp
}

// variants is how many different compressed messages there are at most, unless they are compressed
// anew.
const variants = 16

func newTemplate(o *Options) (*template, error) {
	t := &template{o: o}
	m := &maker{size: o.Size, records: o.Records, when: time.Now()}
	var c *compressor
	if o.Compress != "" {
		var err error
		if c, err = newCompressor(o.Compress); err != nil {
			return nil, err
		}
	}
	enough := blockSize(o.Connections)
	for {
		before := len(t.bytes)
		if err := t.add(m, c); err != nil {
			return nil, err
		}
		size := len(t.bytes) - before
		if size > maxMessage || len(t.bytes) > 2*maxMessage {
			return nil, fmt.Errorf("a message of %d bytes, and %d in all, are more than %d", size, len(t.bytes),
				maxMessage)
		}
		full := len(t.bytes)+size > enough
		if c != nil {
			full = full || len(t.ends) == variants
		}
		if t.fresh != nil || full && m.n >= len(o.Records) {
			t.eventSize = m.bytes / m.n
			return t, nil
		}
	}
}

// add encodes one more message.
func (t *template) add(m *maker, c *compressor) error {
	o := t.o
	b := t.bytes
	switch o.Mode {
	case ModeMessage:
		n := 3
		if o.Ack {
			n = 4
		}
		b = msgpack.AppendString(msgpack.AppendArrayHeader(b, n), o.Tag)
		var at stamp
		var err error
		if b, at, err = m.append(b); err != nil {
			return err
		}
		t.stamps = append(t.stamps, at)
	case ModeForward:
		b = msgpack.AppendString(msgpack.AppendArrayHeader(b, 3), o.Tag)
		e := entries{bytes: msgpack.AppendArrayHeader(b, o.Batch), stamps: t.stamps}
		if err := e.fill(o.Batch, m); err != nil {
			return err
		}
		b, t.stamps = e.bytes, e.stamps
	case ModePacked:
		var e entries
		if err := e.fill(o.Batch, m); err != nil {
			return err
		}
		packed := e.bytes
		if c != nil {
			if o.Fresh {
				t.fresh = &e
			}
			var err error
			if packed, err = c.compress(nil, e.bytes); err != nil {
				return err
			}
		}
		b = appendPacked(b, o, packed)
		if c == nil {
			at := uint32(len(b) - len(packed))
			for _, s := range e.stamps {
				t.stamps = append(t.stamps, stamp{s.time + at, s.seq + at})
			}
		}
	}
	b, id := appendOption(b, o)
	if o.Ack {
		t.ids = append(t.ids, uint32(id))
	}
	t.bytes, t.ends = b, append(t.ends, len(b))
	return nil
}

// fill appends n entries.
func (e *entries) fill(n int, m *maker) error {
	start := len(e.bytes)
	for range n {
		b, at, err := m.append(msgpack.AppendArrayHeader(e.bytes, 2))
		if err != nil {
			return err
		}
		if len(b)-start > maxMessage {
			return fmt.Errorf("a message of %d of these events is larger than %d bytes", n, maxMessage)
		}
		e.bytes, e.stamps = b, append(e.stamps, at)
	}
	return nil
}

// appendPacked appends a packed message as far as its entries.
func appendPacked(b []byte, o *Options, packed []byte) []byte {
	b = msgpack.AppendString(msgpack.AppendArrayHeader(b, 3), o.Tag)
	return append(msgpack.AppendBinHeader(b, len(packed)), packed...)
}

// appendOption appends the option map of a message, if it has one. The id, which is at id, comes
// last: its place depends on nothing that could follow.
func appendOption(b []byte, o *Options) (out []byte, id int) {
	if o.Mode == ModeMessage {
		if !o.Ack {
			return b, 0
		}
		b = msgpack.AppendMapHeader(b, 1)
	} else {
		n := 1
		for _, has := range [...]bool{o.Ack, o.Compress != ""} {
			if has {
				n++
			}
		}
		b = msgpack.AppendMapHeader(b, n)
		b = msgpack.AppendUint(msgpack.AppendString(b, "size"), uint64(o.Batch))
		if o.Compress != "" {
			b = msgpack.AppendString(msgpack.AppendString(b, "compressed"), o.Compress)
		}
	}
	if o.Ack {
		b = msgpack.AppendStringHeader(msgpack.AppendString(b, "chunk"), idChars)
		id = len(b)
		b = append(b, make([]byte, idChars)...)
	}
	return b, id
}

// messageSize is how long a message is on average.
func (t *template) messageSize() int { return len(t.bytes) / len(t.ends) }
