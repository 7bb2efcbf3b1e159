// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// stored is a chunk that the journal has taken.
type stored struct {
	prev, pos journal.Position // of AppendAfter
	chunk     *forward.Chunk   // lent
}

// item is a kept chunk.
type item struct {
	// chunk is what Parse and Inflate make of its record, without what no reader wants of it. It is
	// shared: nothing writes to it. Its tag is the string that came, not a copy.
	chunk     forward.Chunk
	prev, pos journal.Position

	has  wants
	slab *slab
	next *item // with the same hash
}

// retain keeps the chunk until one more Release.
func (i *item) retain() { i.slab.refs.Add(1) }

// Release gives back what get or retain gave. The chunk is not used after the last one.
func (i *item) Release() {
	if s := i.slab; s.refs.Add(-1) == 0 {
		s.owner.mu.Lock()
		defer s.owner.mu.Unlock()
		s.owner.slabs.put(s)
	}
}

// fill copies a chunk into room.
func (i *item) fill(a *stored, w wants, room []byte) {
	c := a.chunk
	copyOf := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		n := copy(room, b)
		b, room = room[:n:n], room[n:]
		return b
	}
	i.prev, i.pos, i.has = a.prev, a.pos, w
	i.chunk.Tag, i.chunk.Events, i.chunk.Signal, i.chunk.UniqueID = c.Tag, c.Events, c.Signal, c.UniqueID
	i.chunk.ID, i.chunk.IDBin = copyOf(c.ID), c.IDBin
	if c.Compressed != nil {
		i.chunk.Compression = c.Compression
		if w&wantBody != 0 {
			i.chunk.Compressed = copyOf(c.Compressed)
		}
	}
	if c.Compressed == nil || w&wantEntries != 0 {
		i.has |= wantEntries
		i.chunk.Entries = copyOf(c.Entries)
	}
	if c.Compressed == nil {
		i.has |= wantBody
	}
}

// room is how many bytes fill copies.
func (a *stored) room(w wants) int {
	c := a.chunk
	n := len(c.ID)
	if w&wantBody != 0 {
		n += len(c.Compressed)
	}
	if c.Compressed == nil || w&wantEntries != 0 {
		n += len(c.Entries)
	}
	return n
}
