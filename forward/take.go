// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// errIDLength refuses a message.
var errIDLength = &fault{PeerBadID, fmt.Errorf("a chunk id of more than %d bytes", MaxID)}

// take makes a chunk of a complete message, b, or notes its event for one. Only an error that
// ends the connection is returned.
func (c *taker) take(b []byte) error {
	d, g := &c.in.dec, c.g
	c.complete++
	name := d.Name(b)
	if d.Usual && c.plain && !d.HasOption() {
		if at, end := d.Event(); g.next(name, ref{int32(c.in.r + at), int32(end - at), -1, -1}) {
			return nil // the event of nearly every message without an ack
		}
	}
	c.sentTag = ""
	switch {
	case c.forced != nil:
		c.sentTag, _ = c.tags.get(name)
		name = c.forced
	case c.prefix != nil:
		c.sentTag, _ = c.tags.get(name)
		name = append(c.prefix, name...) // there is room: it is looked at before the next one
	}
	c.makeStamp()
	tag, fresh := c.tags.get(name)
	if fresh && oddTag(tag) {
		c.report(PeerBadTag, ActionKeep, tag, 0, errors.New("a tag with control characters or .. in it"))
	}
	o := &c.opt
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
		c.refuse(tag, faultf(PeerSignal, "fluent_signal %d: only logs are taken", o.Signal))
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
		ck  = &c.ck
		err error
	)
	*ck = wire.Check{Most: d.MaxEvent, Spans: ck.Spans[:0]}
	switch k := o.Compression(); k {
	case wire.CompressionPlain:
		if err = ck.Run(packed, wire.NoLimit, d.Scanner(), int64(len(packed))); err != nil {
			err = wire.ScanFault(err, wire.FaultInvalidChunk)
		}
	case wire.CompressionGzip, wire.CompressionZstd:
		return c.takeCompressed(tag, k, packed)
	case wire.UnknownCompression:
		err = faultf(PeerUnknownCompression, "compressed as %q", wire.Shorten(o.Compressed))
	}
	return c.takePacked(tag, packed, ck, nil, nil, err)
}

// takeEvent takes the event of a message in Message mode.
func (c *taker) takeEvent(tag string, b []byte) error {
	d, g := &c.in.dec, c.g
	var s wire.Shape
	d.Shape(b, &s)
	switch s.Verdict {
	case wire.VerdictSkipped:
		c.count.skipped.Add(1)
		c.addAck()
		return nil
	case wire.VerdictInvalid:
		if c.invalid(tag, 1, 1, s.Why) {
			c.addAck()
		}
		return nil
	case wire.VerdictGood, wire.VerdictTimeless:
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
	if c.opt.ID == nil && size <= maxGather {
		if g.gathered+size+11+c.stamp.MaxBytes() > maxScratch {
			if err := c.flush(); err != nil {
				return err
			}
		}
		anew := int32(-1)
		if s.Verdict == wire.VerdictTimeless || c.stamp != nil {
			anew = int32(len(g.shapes))
			g.shapes = append(g.shapes, s)
		}
		g.add(g.gather(tag), ref{int32(c.in.r + at), int32(size), -1, anew}, c.stamp.MaxBytes(),
			s.Verdict == wire.VerdictTimeless)
		return nil
	}
	inPlace(b, at)
	event := b[at-1 : end : end]
	var raw []byte
	var own *budget.Buffer
	if s.Verdict == wire.VerdictTimeless || c.stamp != nil {
		var err error
		if own, err = c.extra(budget.SizeOf(int64(size + 11 + c.stamp.MaxBytes()))); err != nil {
			return err
		}
		raw = event
		event, _ = wire.AppendAnew(own.B[:0], event[1:], 0, &s, c.s.now(), c.stamp)
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

// oddTag tells whether a tag has something in it that is hardly meant. It is stored all the same.
func oddTag(tag string) bool {
	return strings.IndexFunc(tag, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 || strings.Contains(tag, "..")
}
