// SPDX-License-Identifier: Apache-2.0

package load

import (
	crand "crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// A block is what one connection writes from.
type block struct {
	template     // bytes, and with fresh entries also ends and ids, are the block's own
	next     int // the message to take next
	seq      *atomic.Int64
	rand     *rand.ChaCha8
	compress *compressor
	squeezed []byte
}

// newBlock makes a block whose events take their numbers from seq.
func (t *template) newBlock(seq *atomic.Int64) (*block, error) {
	b := &block{template: *t, seq: seq}
	b.bytes = slices.Clone(t.bytes)
	if t.fresh != nil {
		b.fresh = &entries{slices.Clone(t.fresh.bytes), t.fresh.stamps}
		b.ends, b.ids = slices.Clone(t.ends), slices.Clone(t.ids)
		var err error
		if b.compress, err = newCompressor(t.o.Compress); err != nil {
			return nil, err
		}
	}
	if t.ids != nil {
		var seed [32]byte
		crand.Read(seed[:])
		b.rand = rand.NewChaCha8(seed)
	}
	return b, nil
}

// take returns up to limit messages, at least one, in one piece. It is written before the next
// call. It calls id with the id of each.
func (b *block) take(limit int64, now time.Time, id func([]byte)) (wire []byte, messages int, err error) {
	if b.fresh != nil {
		if err := b.renew(now); err != nil {
			return nil, 0, err
		}
	}
	first, last := b.next, int(min(int64(len(b.ends)), int64(b.next)+limit))
	from := 0
	if first > 0 {
		from = b.ends[first-1]
	}
	if b.stamps != nil {
		batch := b.o.Batch
		b.stamp(b.bytes, b.stamps[first*batch:last*batch], now)
	}
	if b.ids != nil {
		for _, at := range b.ids[first:last] {
			place := b.bytes[at : at+idChars]
			b.putID(place)
			id(place)
		}
	}
	b.next = last
	if last == len(b.ends) {
		b.next = 0
	}
	return b.bytes[from:b.ends[last-1]], last - first, nil
}

// stamp writes the time and fresh numbers over those of the events.
func (b *block) stamp(in []byte, events []stamp, now time.Time) {
	n := int64(len(events))
	seq := b.seq.Add(n) - n
	when := eventTime(now)
	for i, s := range events {
		s.put(in, when, seq+int64(i))
	}
}

// renew makes the one message of the block, of events with new times and numbers, compressed anew.
func (b *block) renew(now time.Time) (err error) {
	b.stamp(b.fresh.bytes, b.fresh.stamps, now)
	if b.squeezed, err = b.compress.compress(b.squeezed[:0], b.fresh.bytes); err != nil {
		return err
	}
	wire, id := appendOption(appendPacked(b.bytes[:0], b.o, b.squeezed), b.o)
	if b.ids != nil {
		b.ids[0] = uint32(id)
	}
	b.bytes, b.ends[0] = wire, len(wire)
	return nil
}

func (b *block) putID(place []byte) {
	var random [16]byte
	binary.LittleEndian.PutUint64(random[:8], b.rand.Uint64())
	binary.LittleEndian.PutUint64(random[8:], b.rand.Uint64())
	base64.StdEncoding.Encode(place, random[:])
}
