// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/msgpack"
)

// How this file is organised. A connection whose first byte is { or [ speaks JSON (docs/forward.md
// rule 43). Each JSON value is turned into the MessagePack of the same message and then taken as
// such; only its ack is JSON. The JSON decoder asks for more bytes when it has used up what there
// is: before that waits for the peer, everything complete is handed on.

// jsonReader is what the JSON decoder reads.
type jsonReader struct {
	c     *conn
	out   []byte // messages as MessagePack, not yet handed on
	taken int64  // bytes of the value in progress that were read
	held  int64  // of the budget
	err   error
}

// Read gives the decoder what has arrived.
func (j *jsonReader) Read(p []byte) (int, error) {
	c := j.c
	if c.r == c.w {
		if j.err = j.flush(); j.err != nil {
			return 0, j.err
		}
		c.r, c.w = 0, 0
		j.trim()
		if j.err = c.fill(); j.err != nil {
			return 0, j.err
		}
	}
	n := copy(p, c.buf.B[c.r:c.w])
	if j.taken += int64(n); j.taken > c.s.maxMessage {
		j.err = faultf(PeerTooLarge, "a message of more than %d bytes", c.s.maxMessage)
		return 0, j.err
	}
	if need := j.need(); need > j.held {
		if j.err = c.memory(need - j.held); j.err != nil {
			return 0, j.err
		}
		j.held = need
	}
	c.r += n
	return n, nil
}

// need is what the value in progress takes of the budget. The decoder keeps its text and doubles
// its buffer; the MessagePack of it is not longer than that, or little.
func (j *jsonReader) need() int64 {
	if 4*j.taken <= budget.Parked {
		return 0
	}
	return int64(budget.SizeOf(4 * j.taken))
}

// trim gives back, before the peer is waited for, what the value in progress does not need.
func (j *jsonReader) trim() {
	if cap(j.out) > budget.Parked {
		j.out = nil
	}
	if need := j.need(); need < j.held {
		j.c.hold.Release(j.held - need)
		j.held = need
	}
}

// flush hands on the messages that are complete.
func (j *jsonReader) flush() error {
	c := j.c
	if len(j.out) == 0 {
		return nil
	}
	out := j.out
	j.out = nil // memory may flush while a message is taken
	c.takeGroup()
	in, r, w := c.buf, c.r, c.w
	c.buf, c.r, c.w = &budget.Buffer{B: out}, 0, len(out)
	err := c.messages()
	if ferr := c.flush(); ferr != nil {
		err = ferr
	}
	c.buf, c.r, c.w = in, r, w
	c.largest = 0 // of JSON the buffer never holds more than what was read at once
	c.dec.Reset()
	if cap(out) <= keptBuffer {
		j.out = out[:0]
	}
	return err
}

// runJSON is run for a connection that speaks JSON.
func (c *conn) runJSON() error {
	c.json = true
	src := &jsonReader{c: c}
	defer func() { c.hold.Release(src.held) }()
	dec := newJSONDecoder(src)
	ahead := new(bytes.Reader) // what an earlier decoder had read and this one has not
	var msg []byte             // by itself, for src.out may be handed on while the rest of it is waited for
	for {
		began := dec.InputOffset()
		var err error
		if msg, err = msgpack.AppendFromJSON(msg[:0], dec); err != nil {
			return c.endJSON(src, err)
		}
		size := dec.InputOffset() - began
		src.taken -= size
		src.out = append(src.out, msg...)
		if max(size, int64(cap(msg))) > budget.Parked { // a decoder keeps the buffer of the largest value that it had
			rest, _ := io.ReadAll(io.MultiReader(dec.Buffered(), ahead)) // never fails
			ahead.Reset(rest)
			dec, msg = newJSONDecoder(io.MultiReader(ahead, src)), nil
		}
		if len(src.out) > readSize {
			if err := src.flush(); err != nil {
				return err
			}
		}
	}
}

func newJSONDecoder(r io.Reader) *json.Decoder {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	return dec
}

// endJSON tells why the JSON ended.
func (c *conn) endJSON(src *jsonReader, err error) error {
	if ferr := src.flush(); ferr != nil {
		return ferr
	}
	switch {
	case src.err != nil && !errors.Is(src.err, io.EOF):
		return src.err
	case errors.Is(err, msgpack.ErrDepth):
		return &fault{PeerTooDeep, err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		c.odd = 0
		return faultf(PeerPartial, "the stream ended within a message")
	case errors.Is(err, io.EOF):
		return io.EOF
	}
	return &fault{PeerGarbage, err}
}
