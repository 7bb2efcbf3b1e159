// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. An outlet hands on the group of a connection: what is complete after
// a read, or what has to go because the connection would wait for memory. Chunks go to the handler,
// acks behind them into their line (ack.go).

// outlet is the way of a connection's chunks to the handler.
type outlet struct {
	*remote
	in    *reader
	acks  *acks
	g     *group      // nil while idle
	stamp *wire.Stamp // nil: nothing is added to records, or not yet
	away  away        // chunks that an AsyncHandler has
}

// flush hands the group on.
func (c *outlet) flush() error {
	g := c.g
	if g.empty() {
		return nil
	}
	var err error
	if g.used > 0 {
		err = c.hand()
	} else {
		err = c.acks.ack(g.acks, g.ackCount, nil)
	}
	for _, b := range g.extra {
		c.hold.Drop(b)
	}
	g.reset()
	return err
}

// hand gives the chunks to the handler.
func (c *outlet) hand() error {
	g := c.g
	if g.needsScratch() {
		if err := c.needScratch(); err != nil {
			return err
		}
	}
	var buf []byte
	if c.in.buf != nil {
		buf = c.in.buf.B
	}
	var now time.Time
	if g.timeless {
		now = c.s.now()
	}
	g.seal(buf, now, c.stamp)
	chunks := g.chunks[:g.used]
	var events uint64
	for _, ch := range chunks {
		events += uint64(ch.Events)
	}
	c.count.chunks.Add(uint64(len(chunks)))
	c.count.events.Add(events)
	switch {
	case c.s.async != nil:
		return c.handAsync(chunks)
	case c.s.group == nil:
		return c.handEach(chunks)
	}
	wait, err := c.s.group.ServeGroup(c.ctx, chunks)
	if err != nil {
		c.unstored(err)
		return errGone
	}
	return c.acks.ack(g.acks, g.ackCount, wait)
}

// handEach gives them to a handler that takes no groups. Each one's ack goes out before the next
// one is handed on; so do, after it, those of messages that left nothing to hand on.
func (c *outlet) handEach(chunks []*Chunk) error {
	g := c.g
	at, acked := 0, 0
	for i, ch := range chunks {
		if err := c.s.handler.ServeForward(c.ctx, ch); err != nil {
			c.unstored(err)
			return errGone
		}
		end, count := len(g.acks), g.ackCount
		if i+1 < len(chunks) {
			end, count = g.starts[i+1].acks, g.starts[i+1].count
		}
		if err := c.acks.ack(g.acks[at:end], count-acked, nil); err != nil {
			return err
		}
		at, acked = end, count
	}
	return nil
}

// handAsync gives chunks to a handler that finishes them later.
func (c *outlet) handAsync(chunks []*Chunk) error {
	p, err := c.pack(chunks)
	if err != nil {
		return err
	}
	g := c.g
	room := func(n int) bool {
		return c.away.failed.Load() || n == 0 || n < c.s.maxInFlight && c.hold.Lent() <= c.s.mem.Limit()/8
	}
	at, acked := 0, 0
	for i, ch := range chunks {
		if !c.away.until(room, c.s.stop) || c.away.failed.Load() {
			p.abandon(len(chunks) - i)
			return errGone
		}
		f := &asyncChunk{chunk: *ch, parcel: p, ended: make(chan struct{})}
		if ch.Sent != nil {
			f.sent = *ch.Sent
			f.chunk.Sent = &f.sent
		}
		end, count := len(g.acks), g.ackCount
		if i+1 < len(chunks) {
			end, count = g.starts[i+1].acks, g.starts[i+1].count
		}
		c.away.mu.Lock()
		c.away.n++
		c.away.mu.Unlock()
		c.s.async.StartForward(c.ctx, &f.chunk, f.done)
		if err := c.acks.ack(g.acks[at:end], count-acked, f.wait); err != nil {
			p.abandon(len(chunks) - i - 1)
			return err
		}
		at, acked = end, count
	}
	if c.hold.Over() { // an overdraft ends before the next message begins
		c.away.until(none, c.s.stop)
	}
	return nil
}

// pack makes a parcel of chunks that are to be handed on. What is small in a large buffer moves to
// one of its own, so that it does not hold the other.
func (c *outlet) pack(chunks []*Chunk) (*parcel, error) {
	g := c.g
	p := &parcel{c: c.remote, away: &c.away}
	p.left.Store(int32(len(chunks)))
	if len(g.extra) == 0 || c.in.json { // of JSON the connection has no buffer of its own
		size := int64(0)
		for _, ch := range chunks {
			for _, part := range partsOf(ch) {
				size += int64(len(*part))
			}
		}
		if own := budget.SizeOf(size); c.in.json || own <= len(c.in.buf.B)/8 {
			if err := c.memoryNow(int64(own)); err != nil {
				return nil, err
			}
			b := c.hold.Take(own)
			rest := b.B[:0]
			for _, ch := range chunks {
				for _, part := range partsOf(ch) {
					if *part != nil {
						n := len(rest)
						rest = append(rest, *part...)
						*part = rest[n:len(rest):len(rest)]
					}
				}
			}
			p.share(b)
			c.hold.Drop(b)
			return p, nil
		}
	}
	if c.in.buf != nil {
		p.share(c.in.buf)
	}
	if g.scratch != nil {
		p.share(g.scratch)
		c.dropScratch()
	}
	for _, b := range g.extra {
		p.share(b)
	}
	return p, nil
}

// partsOf is all that a chunk has in buffers.
func partsOf(ch *Chunk) [5]*[]byte {
	sent := ch.Sent
	if sent == nil {
		sent = new(Sent)
	}
	return [...]*[]byte{&ch.ID, &ch.Entries, &ch.Compressed, &sent.Entries, &sent.Compressed}
}

// memory takes n bytes of the budget, after waiting for them if need be.
func (c *outlet) memory(n int64) error {
	if c.hold.Try(n) {
		return nil
	}
	if c.g != nil { // what is complete need not wait, and gives back what it holds
		if err := c.flush(); err != nil {
			return err
		}
	}
	return c.memoryNow(n)
}

// extra takes a buffer for entries that cannot stay where they are. It belongs to the caller until
// keepExtra.
func (c *outlet) extra(size int) (*budget.Buffer, error) {
	if err := c.memory(int64(size)); err != nil {
		return nil, err
	}
	return c.hold.Take(size), nil
}

// growExtra replaces such a buffer, of which n bytes are used, by a larger one.
func (c *outlet) growExtra(b *budget.Buffer, n, size int) (*budget.Buffer, error) {
	bigger, err := c.extra(size)
	if err != nil {
		return b, err
	}
	copy(bigger.B, b.B[:n])
	c.hold.Drop(b)
	return bigger, nil
}

// keepExtra lets the buffer live until the group is handed on.
func (c *outlet) keepExtra(b *budget.Buffer) {
	c.g.extra = append(c.g.extra, b)
	c.g.extraLen += b.Size()
}

// needScratch gets the group its scratch.
func (c *outlet) needScratch() error {
	if c.g.scratch == nil {
		if err := c.memoryNow(maxScratch); err != nil {
			return err
		}
		c.g.scratch = c.hold.Take(maxScratch)
	}
	return nil
}

func (c *outlet) dropScratch() {
	if c.g != nil && c.g.scratch != nil {
		c.hold.Drop(c.g.scratch)
		c.g.scratch = nil
	}
}
