// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// What refuses a message that is one.
var (
	errBrokenOff = errors.New("the packed entries break off within one")
	errAlien     = errors.New("there is not one entry in it")
	errIDLength  = &fault{BadID, fmt.Errorf("a chunk id of more than %d bytes", MaxID)}
)

// take makes a chunk of a complete message, b, or notes its event for one. Only trouble that ends
// the connection is returned.
func (c *conn) take(b []byte) error {
	d, g := &c.dec, c.g
	c.complete++
	name := d.Name(b)
	if d.Usual && c.plain && !d.HasOption() {
		if at, end := d.Event(); g.next(name, ref{int32(c.r + at), int32(end - at), -1, -1}) {
			return nil // the event of nearly every message without an ack
		}
	}
	g.sentTag = ""
	switch {
	case c.forced != nil:
		g.sentTag, _ = g.tags.get(name)
		name = c.forced
	case c.prefix != nil:
		g.sentTag, _ = g.tags.get(name)
		name = append(c.prefix, name...) // there is room: it is looked at before the next one
	}
	c.find()
	tag, fresh := g.tags.get(name)
	if fresh && oddTag(tag) {
		c.trouble(BadTag, Kept, tag, 0, errors.New("a tag with control characters or .. in it"))
	}
	o := &g.opt
	if d.HasOption() {
		o.Parse(d.Options(b))
	} else {
		*o = wire.Option{}
	}
	switch {
	case len(tag) > MaxTag:
		c.refuse(tag[:64], wire.ErrTagLength)
		return nil
	case len(o.ID) > MaxID:
		c.refuse(tag, errIDLength)
		return nil
	case o.Signal != 0:
		c.refuse(tag, faultf(Signal, "fluent_signal %d: only logs are taken", o.Signal))
		return nil
	}
	switch d.Mode {
	case wire.ModeMessage, wire.ModeMeta:
		return c.takeEvent(tag, b)
	case wire.ModeForward:
		return c.takeEntries(tag, d.Entries(b), &d.Entry, nil, nil)
	case wire.ModePacked:
	}
	packed := d.Entries(b)
	var (
		ck  = &g.ck
		err error
	)
	*ck = wire.Check{Most: d.MaxEvent, Spans: ck.Spans[:0]}
	switch k := o.Compression(); k {
	case wire.Plain:
		if err = ck.Run(packed, wire.NoMost, d.Scanner(), int64(len(packed))); err != nil {
			err = wire.ScanFault(err, wire.InvalidChunk)
		}
	case wire.Gzip, wire.Zstd:
		return c.takeCompressed(tag, k, packed)
	case wire.UnknownCompression:
		err = faultf(UnknownCompression, "compressed as %q", wire.Shorten(o.Compressed))
	}
	return c.takePacked(tag, packed, ck, nil, nil, err)
}

// takePacked makes a chunk of packed entries, if they are what they should be. err is what was
// found so far; see takeEntries.
func (c *conn) takePacked(tag string, packed []byte, ck *wire.Check, own *buffer, compressed []byte, err error) error {
	if err == nil && ck.Pos != int64(len(packed)) {
		err = &fault{InvalidChunk, errBrokenOff}
	}
	if err == nil && ck.Alien() {
		err = &fault{InvalidChunk, errAlien}
	}
	if err != nil {
		ck.Drop()
		if own != nil {
			c.drop(own)
		}
		return c.refused(tag, err)
	}
	return c.takeEntries(tag, packed, ck, own, compressed)
}

// takeCompressed makes a chunk of compressed entries.
func (c *conn) takeCompressed(tag string, kind wire.Compression, packed []byte) error {
	give, err := c.takeInflaters()
	if err != nil {
		return err
	}
	defer give()
	in, ck := &c.g.in, &c.g.ck
	*in = sifting{c: c, kind: kind, from: len(packed), ck: ck}
	err = c.inflate(in, packed)
	if errors.Is(err, errLater) {
		err = c.siftLater(tag, in, packed)
		ck.Drop()
		c.inflaters.Done()
		return err
	}
	if in.buf == nil {
		return c.takePacked(tag, packed, ck, nil, nil, err)
	}
	return c.takePacked(tag, in.buf.b[:in.n], ck, in.buf, packed[:len(packed):len(packed)], err)
}

// takeEntries makes a chunk of entries that were all looked at. own is the buffer they lie in, nil
// for the read buffer; compressed is how they came, nil for as they are.
func (c *conn) takeEntries(tag string, entries []byte, ck *wire.Check, own *buffer, compressed []byte) error {
	defer ck.Drop()
	g := c.g
	anew := !ck.Clean() || c.src != nil                                      // entries are to be written anew
	size := int64(len(entries)) + 9*ck.Zeros + ck.Events*int64(c.src.Most()) // an EventTime takes 10 bytes, a time of 0 at least 1
	if most := max(c.s.maxDecompressed, keptBuffer, int64(len(entries))); anew && size > most {
		if own != nil {
			c.drop(own)
		}
		c.count.refusedEvents.Add(uint64(ck.Values()))
		c.refuse(tag, faultf(Bomb, "more than %d bytes with what is added to every entry", most))
		return nil
	}
	if ck.Invalid > 0 && !c.invalid(tag, int(ck.Invalid), ck.Values(), ck.Why) {
		if own != nil {
			c.drop(own)
		}
		return nil
	}
	if ck.Large > 0 {
		if c.refuseLarge(tag, ck, ck.Spans[0].Size) {
			if own != nil {
				c.drop(own)
			}
			return nil
		}
		if err := c.asideSpans(tag, entries, ck.Spans); err != nil {
			if own != nil {
				c.drop(own)
			}
			return err
		}
	}
	c.count.skipped.Add(uint64(ck.Skipped))
	if ck.Events == 0 {
		if own != nil {
			c.drop(own)
		}
		c.addAck()
		return nil
	}
	var raw []byte
	if anew {
		raw = entries
		b, err := c.extra(bufferSize(size))
		if err != nil {
			if own != nil {
				c.drop(own)
			}
			return err
		}
		entries = ck.Rewrite(b.b[:0], entries, c.s.now(), c.src)
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
		ch.Compressed, ch.Compression = compressed, g.opt.Compression().String()
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

// takeEvent takes the event of a message in Message mode.
func (c *conn) takeEvent(tag string, b []byte) error {
	d, g := &c.dec, c.g
	var s wire.Shape
	d.Shape(b, &s)
	switch s.Verdict {
	case wire.Skipped:
		c.count.skipped.Add(1)
		c.addAck()
		return nil
	case wire.Invalid:
		if c.invalid(tag, 1, 1, s.Why) {
			c.addAck()
		}
		return nil
	case wire.Good, wire.Timeless:
	}
	at, end := d.Event()
	size := end - at
	if d.MaxEvent > 0 && int64(size+1) > d.MaxEvent {
		inPlace(b, at)
		if c.refuseLarge(tag, &wire.Check{Large: 1}, int64(size+1)) {
			return nil
		}
		if err := c.asideOne(tag, b[at-1:end:end], 0); err != nil {
			return err
		}
		c.addAck()
		return nil
	}
	if g.opt.ID == nil && size <= gatherMost {
		if g.gathered+size+11+c.src.Most() > scratchMost {
			if err := c.flush(); err != nil {
				return err
			}
		}
		anew := int32(-1)
		if s.Verdict == wire.Timeless || c.src != nil {
			anew = int32(len(g.shapes))
			g.shapes = append(g.shapes, s)
		}
		g.add(g.gather(tag), ref{int32(c.r + at), int32(size), -1, anew}, c.src.Most(), s.Verdict == wire.Timeless)
		return nil
	}
	inPlace(b, at)
	event := b[at-1 : end : end]
	var raw []byte
	var own *buffer
	if s.Verdict == wire.Timeless || c.src != nil {
		var err error
		if own, err = c.extra(bufferSize(int64(size + 11 + c.src.Most()))); err != nil {
			return err
		}
		raw = event
		event, _ = wire.AppendAnew(own.b[:0], event[1:], 0, &s, c.s.now(), c.src)
	}
	g.close(tag)
	ch := c.chunk(tag)
	ch.Entries, ch.Events = event, 1
	if raw != nil {
		g.sent().Entries = raw
	}
	if own != nil {
		c.keepExtra(own)
	}
	return nil
}

// chunk begins a chunk of the message in progress, and notes its ack.
func (c *conn) chunk(tag string) *Chunk {
	g, o := c.g, &c.g.opt
	ch := g.chunk()
	ch.Tag = tag
	if g.sentTag != "" {
		g.sent().Tag = g.sentTag
	}
	ch.ID, ch.IDBin, ch.Own = o.ID, o.IDBin, o.Own
	c.addAck()
	return ch
}

// addAck notes the ack of the message in progress, if it asked for one (docs/forward.md rules 24,
// 25).
func (c *conn) addAck() {
	g := c.g
	if g.opt.ID != nil {
		g.acks = wire.AppendAck(g.acks, g.opt.ID, g.opt.IDBin, c.json)
		g.ackCount++
	}
}

// invalid tells of n invalid entries of all that a message has, and whether the rest is to be
// stored.
func (c *conn) invalid(tag string, n int, all int64, why uint8) bool {
	err := wire.Reasons[why]
	if c.s.RefuseInvalid {
		c.count.refusedEvents.Add(uint64(all))
		c.refuse(tag, &fault{InvalidEntries, err})
		return false
	}
	c.count.invalid.Add(uint64(n))
	c.trouble(InvalidEntries, Kept, tag, n, err)
	return true
}

// oddTag tells whether a tag has something in it that hardly anybody means. It is stored all the
// same.
func oddTag(tag string) bool {
	return strings.IndexFunc(tag, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 || strings.Contains(tag, "..")
}
