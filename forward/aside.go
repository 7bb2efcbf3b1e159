// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// What is set aside of a large event.
const (
	// maxAside is the largest event that is set aside as a whole. Of a larger one asideHead bytes
	// are.
	maxAside  = 64 << 20
	asideHead = 64 << 10
)

// aside sets one large event aside, and tells it.
func (c *taker) aside(e *LargeEvent) error {
	e.Sec, e.Nsec = wire.TimeOf(e.Entry)
	what := "left out"
	if c.s.aside != nil {
		what = "set aside"
		if err := c.s.aside(c.ctx, e); err != nil {
			c.unstored(err)
			return errGone
		}
	}
	if !e.Whole() {
		what += fmt.Sprintf(", its first %d bytes", len(e.Entry))
	}
	c.count.large.Add(1)
	c.report(PeerTooLargeEvent, ActionKeep, e.Chunk.Tag, 1,
		fmt.Errorf("an event of %d bytes, the limit is %d: %s", e.Size, c.s.maxEvent, what))
	return nil
}

// asideSpans sets the large entries of b aside, which has them as a whole.
func (c *taker) asideSpans(tag string, b []byte, spans []wire.Span) error {
	for i, l := range spans {
		if err := c.asideOne(tag, b[l.Start:l.End:l.End], i); err != nil {
			return err
		}
	}
	return nil
}

// asideOne sets a large entry aside that is in memory.
func (c *taker) asideOne(tag string, entry []byte, i int) error {
	if c.s.largeTurn != nil {
		defer c.s.largeTurn(c.ctx)()
	}
	e := &LargeEvent{Index: i, Entry: entry, Size: int64(len(entry)), Chunk: c.bare(tag)}
	if e.Size > maxAside {
		e.Entry = entry[:asideHead]
	}
	return c.aside(e)
}

// refuseLarge says whether a chunk with large entries is refused, which it tells.
func (c *taker) refuseLarge(tag string, ck *wire.Check, size int64) bool {
	if !c.ep.RefuseLarge {
		return false
	}
	c.count.refusedEvents.Add(uint64(ck.Values()))
	c.refuse(tag, faultf(PeerTooLargeEvent, "an event of %d bytes, the limit is %d", size, c.s.maxEvent))
	return true
}

// A setting gathers the large events of a chunk, one at a time, and has each set aside.
type setting struct {
	c     *taker
	chunk *Chunk
	sizes []int64
	entry []byte
	taken int64
	done  func()
}

func (s *setting) add(b []byte, i int) error {
	if s.entry == nil {
		if err := s.begin(s.sizes[i]); err != nil {
			return err
		}
	}
	s.entry = append(s.entry, b[:min(len(b), cap(s.entry)-len(s.entry))]...)
	return nil
}

// begin waits for its turn: one large event is in memory at a time.
func (s *setting) begin(size int64) error {
	if size > maxAside {
		size = asideHead
	}
	c := s.c
	if c.s.largeTurn != nil {
		s.done = c.s.largeTurn(c.ctx)
	}
	s.taken = 2 * size // once more on its way to the disk
	c.hold.ForceRoom(s.taken)
	s.entry = make([]byte, 0, size)
	return nil
}

func (s *setting) end(i int, size int64) error {
	err := s.c.aside(&LargeEvent{Chunk: s.chunk, Index: i, Entry: s.entry, Size: size})
	s.drop()
	return err
}

func (s *setting) drop() {
	if s.entry == nil {
		return
	}
	s.entry = nil
	s.c.hold.Release(s.taken)
	if s.done != nil {
		s.done()
		s.done = nil
	}
}
