// SPDX-License-Identifier: Apache-2.0

package successor

import (
	"errors"
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/journal"
)

// How much is handed out at once, at least one chunk.
const (
	maxChunks = 16
	maxBytes  = 4 << 20
	cutBytes  = 1 << 20 // as loggers cut
)

// errUnread says that a spill has something that is not there to be read just now.
var errUnread = errors.New("the spill cannot be read now")

// errNotOver says that there is more in a ring than can be had.
var errNotOver = errors.New("the ring is not at its end, and gives nothing more")

// marked are chunks that the dead process had cut.
type marked struct {
	l      *Legacy
	chunks []*window.Marked
	given  int
}

func (m *marked) next() (chunks []*forward.Chunk, err error) {
	size := 0
	m.given = 0
	for _, k := range m.chunks {
		if m.given > 0 && (m.given >= maxChunks || size+len(k.Chunk.Entries) > maxBytes) {
			break
		}
		size += len(k.Chunk.Entries)
		chunks = append(chunks, &k.Chunk)
		m.given++
	}
	return chunks, nil
}

func (m *marked) done() error {
	unmark(m.chunks[:m.given], &m.l.mem)
	m.chunks = m.chunks[m.given:]
	return nil
}

func unmark(chunks []*window.Marked, mem *window.Buffers) {
	for _, k := range chunks {
		k.Unmark()
		k.Release(mem)
	}
}

// uncut is what of a ring was not cut yet.
type uncut struct {
	l      *Legacy
	cutter *window.Cutter
	chunks []*window.Marked
}

func (u *uncut) next() ([]*forward.Chunk, error) {
	w := u.cutter
	for w.Cut(&u.l.feed, cutBytes) {
		var chunks []*forward.Chunk
		u.chunks = nil
		for i := range w.Chunks() {
			k := new(window.Marked)
			w.Take(i, k)
			u.chunks = append(u.chunks, k)
			chunks = append(chunks, &k.Chunk)
		}
		u.l.Bad += w.Bad
		w.Mark(u.chunks, window.ToDestination)
		w.Done()
		if len(chunks) > 0 {
			return chunks, nil
		}
	}
	if s := &u.l.feed; s.Fill() || !s.Ended || s.Out > 0 { // the ring is removed next
		return nil, errNotOver
	}
	return nil, nil
}

func (u *uncut) done() error {
	unmark(u.chunks, &u.l.mem)
	return nil
}

// spilled is a spill.
type spilled struct {
	l   *Legacy
	sp  *spill.Spill
	pos journal.Position // behind what was handed out

	bad, lost uint64 // before that
}

func (s *spilled) next() ([]*forward.Chunk, error) {
	for len(s.sp.Found) > 0 {
		var want []journal.Position
		size := uint64(0)
		for _, e := range s.sp.Found {
			if len(want) > 0 && (len(want) >= maxChunks || size+e.Bytes > maxBytes) {
				break
			}
			size += e.Bytes
			want = append(want, e.Pos)
		}
		read, err := s.sp.Fetch(want)
		if len(read) == 0 {
			if err == nil {
				err = errUnread
			}
			return nil, err
		}
		var chunks []*forward.Chunk
		for i, c := range read {
			switch {
			case c == nil:
				s.lost += max(1, uint64(s.sp.Found[i].Events))
			case len(c.ID) != window.IDLen || c.Compressed != nil: // no logger's
				s.bad++
			case s.l.known[ID(c.ID)]:
				s.l.Known = append(s.l.Known, ID(c.ID))
			default:
				c.UniqueID = true
				chunks = append(chunks, c)
			}
		}
		s.pos = s.sp.Found[len(read)-1].Pos
		s.sp.Found = s.sp.Found[len(read):]
		if len(chunks) > 0 {
			return chunks, nil
		}
		if err := s.done(); err != nil {
			return nil, err
		}
	}
	s.l.spills = slices.DeleteFunc(s.l.spills, func(sp *spill.Spill) bool { return sp == s.sp })
	if err := s.sp.Discard(); err != nil {
		return nil, err
	}
	s.l.Spills++
	return nil, nil
}

func (s *spilled) done() error {
	if err := s.sp.Commit(s.pos, nil); err != nil {
		return err
	}
	s.l.Bad += s.bad
	s.l.Lost += s.lost
	s.bad, s.lost = 0, 0
	return nil
}
