// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// takePacked makes a chunk of packed entries, if they are what they should be. err is what was
// found so far; see takeEntries.
func (c *taker) takePacked(tag string, packed []byte, ck *wire.Check, own *budget.Buffer, compressed []byte,
	err error,
) error {
	if err == nil && ck.Pos != int64(len(packed)) {
		err = &fault{PeerInvalidChunk, errBrokenOff}
	}
	if err == nil && ck.Alien() {
		err = &fault{PeerInvalidChunk, errAlien}
	}
	if err != nil {
		ck.Drop()
		if own != nil {
			c.hold.Drop(own)
		}
		return c.refused(tag, err)
	}
	return c.takeEntries(tag, packed, ck, own, compressed)
}

// takeEntries makes a chunk of entries that were all looked at. own is the buffer they lie in, nil
// for the read buffer; compressed is how they came, nil for as they are.
func (c *taker) takeEntries(tag string, entries []byte, ck *wire.Check, own *budget.Buffer, compressed []byte) error {
	defer ck.Drop()
	g := c.g
	anew := !ck.Clean() || c.stamp != nil // entries are to be written anew
	// An EventTime takes 10 bytes, a time of 0 at least 1.
	size := int64(len(entries)) + 9*ck.Zeros + ck.Events*int64(c.stamp.MaxBytes())
	if limit := max(c.s.maxDecompressed, keptBuffer, int64(len(entries))); anew && size > limit {
		if own != nil {
			c.hold.Drop(own)
		}
		c.count.refusedEvents.Add(uint64(ck.Values()))
		c.refuse(tag, faultf(PeerBomb, "more than %d bytes with what is added to every entry", limit))
		return nil
	}
	if ck.Invalid > 0 && !c.invalid(tag, int(ck.Invalid), ck.Values(), ck.Why) {
		if own != nil {
			c.hold.Drop(own)
		}
		return nil
	}
	if ck.Large > 0 {
		if c.refuseLarge(tag, ck, ck.Spans[0].Size) {
			if own != nil {
				c.hold.Drop(own)
			}
			return nil
		}
		if err := c.asideSpans(tag, entries, ck.Spans); err != nil {
			if own != nil {
				c.hold.Drop(own)
			}
			return err
		}
	}
	c.count.skipped.Add(uint64(ck.Skipped))
	if ck.Events == 0 {
		if own != nil {
			c.hold.Drop(own)
		}
		c.addAck()
		return nil
	}
	var raw []byte
	if anew {
		raw = entries
		b, err := c.extra(budget.SizeOf(size))
		if err != nil {
			if own != nil {
				c.hold.Drop(own)
			}
			return err
		}
		entries = ck.Rewrite(b.B[:0], entries, c.s.now(), c.stamp)
		if own != nil {
			c.keepExtra(own)
		}
		own = b
	}
	g.close(tag)
	ch := c.chunk(tag)
	if raw != nil {
		sent := g.sent()
		sent.Entries, sent.Invalid, sent.Skipped = raw, int(ck.Invalid), int(ck.Skipped)
	} else if compressed != nil {
		ch.Compressed, ch.Compression = compressed, c.opt.Compression().String()
	}
	ch.Entries = entries[:len(entries):len(entries)]
	ch.Events = int(ck.Events)
	if own != nil {
		c.keepExtra(own)
		if g.extraLen > keptBuffer {
			return c.flush()
		}
	}
	return nil
}
