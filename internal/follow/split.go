// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// A split is a record that is submitted in pieces, since it is longer than the window.
//
//	record      ┌──────────┬──────────┬───────────┬──────┐
//	            │ piece 0  │ piece 1  │ large one │ last │
//	            └──────────┴──────────┴───────────┴──────┘
//	flights       part       part       part        ends where the record does
//
// Pieces are flights of their own, in order. The cursor passes the record, and a state counts, only
// with the last. How a record is cut does not change from start to start, so neither do the ids.
type split struct {
	// The record; its bytes are the reader's, which reads no further meanwhile, or a recent
	// chunk's.
	chunk  forward.Chunk
	pieces *forward.Pieces
	from   journal.Position // where the record before it ends
	end    journal.Position
	taken  int // entries so far
	part   int // the next
	turn   func()
	held   interface{ Release() } // of a recent chunk
	pinned bool                   // a long event is on its way, which is read where it stands
	large  func()                 // ends the turn of a record that is large as it was stored
}

// A splitter makes several chunks of a record that is longer than the window.
type splitter struct {
	*core
	opened   *opened
	split    split
	cutting  bool            // there is a split
	ctx      context.Context // of Run
	inflater forward.Inflater
	pieces   forward.Pieces
}

func newSplitter(g *core, o *opened) *splitter {
	s := &splitter{core: g, opened: o}
	if g.cfg.Turn != nil {
		g.cfg.Reader.OnLarge(2*g.cfg.Piece, func() {
			if s.split.large == nil && s.ctx != nil {
				s.split.large = g.cfg.Turn.Take(s.ctx)
			}
		})
	}
	return s
}

// longestCopy is the longest event of a compressed record that is in memory, by default four
// pieces. To read a longer one where it stands, all that is before it in its record is decompressed
// again.
const longestCopy = 4

// cutRecord begins with a record that is long, or compressed and perhaps long, and fills a flight
// with its first piece, which may be all of it. small is a compressed one as the flight has it.
func (s *splitter) cutRecord(x *flight, rec journal.Record, small forward.Chunk) error {
	p := s.newSplit()
	if err := p.chunk.Parse(rec.Data); err != nil {
		return err
	}
	p.end = rec.Pos
	err := s.cut(x)
	if err == nil && !x.part && x.long == nil && small.Compressed != nil { // it may leave as it came
		small.Entries = x.own.Entries
		x.own = small
		x.bytes += int64(len(x.data))
	}
	return err
}

// cutRecent is cutRecord for a chunk that is in memory.
func (s *splitter) cutRecent(x *flight, r Recent) error {
	p := s.newSplit()
	p.chunk, p.end, p.held = *r.Chunk, r.End, r.Held
	return s.cut(x)
}

// newSplit begins a split.
func (s *splitter) newSplit() *split {
	s.split = split{
		chunk: forward.Chunk{Tag: s.split.chunk.Tag}, from: s.taken, pieces: &s.pieces,
		large: s.split.large,
	}
	return &s.split
}

// cut begins with what the split is of.
func (s *splitter) cut(x *flight) error {
	p := s.split.pieces
	p.Large, p.MaxCopied = nil, 0
	if s.cfg.Turn != nil {
		p.Large = func() {
			if s.split.large == nil {
				s.split.turn = s.cfg.Turn.Take(s.ctx)
			}
		}
	}
	if (s.opened.longer != nil || s.cfg.Packs) && (s.cfg.Sift == nil || !s.cfg.Sift.Steps()) {
		p.MaxCopied = longestCopy * int(s.cfg.Piece)
	}
	p.Begin(&s.inflater, &s.split.chunk, int(s.cfg.Piece))
	s.cutting = true
	return s.piece(x)
}

// piece fills a flight with the next piece of the split.
func (s *splitter) piece(x *flight) error {
	p := &s.split
	entries, n, last, err := p.pieces.Next(x.entries)
	x.entries, x.turn, p.turn = entries, p.turn, nil
	x.end, x.chunk, x.part, x.first = p.end, &x.own, !last, p.taken
	x.number = p.part
	x.bytes = int64(len(entries))
	x.own = forward.Chunk{Tag: p.chunk.Tag, Signal: p.chunk.Signal, Entries: entries, Events: n}
	if long := p.pieces.Found; err == nil && long != nil {
		err = s.long(x, long)
	}
	if p.chunk.Compressed == nil && last && p.part == 0 {
		x.own.ID, x.own.IDBin, x.own.UniqueID = slices.Clone(p.chunk.ID), p.chunk.IDBin, p.chunk.UniqueID
	}
	if last {
		x.own.Events = p.chunk.Events - p.taken
	}
	if last || err != nil {
		x.held, p.held = p.held, nil
		if !p.pinned {
			s.endSplit()
		}
	}
	p.taken += n
	p.part++
	return err
}

// long has a flight be one long event, which is not in memory unless its output wants it so.
func (s *splitter) long(x *flight, l *forward.Long) error {
	p := &s.split
	if s.opened.longer != nil {
		x.long, x.own.Entries = l, nil
		p.pinned = len(x.entries) == 0
		return nil
	}
	if len(x.entries) > 0 {
		return nil
	}
	c, err := l.Packed()
	if err != nil {
		return err
	}
	x.own, x.bytes = *c, int64(len(c.Compressed))
	return nil
}

// endSplit lets go of what the split is of.
func (s *splitter) endSplit() {
	p := &s.split
	p.pinned = false
	if p.held != nil {
		p.held.Release()
		p.held = nil
	}
	if p.large != nil {
		s.cfg.Reader.Release()
		p.large()
		p.large = nil
	}
}

// identify appends the id of the piece that was read last.
func (p *split) identify(identify func(dst []byte, first, last journal.Position) []byte, dst []byte) []byte {
	var room [128]byte
	id := append(room[:0], p.chunk.ID...)
	if p.chunk.ID == nil || !p.chunk.UniqueID {
		id = identify(room[:0], p.from, p.end)
	}
	id = append(id, 0)
	id = binary.BigEndian.AppendUint32(id, uint32(p.part))
	sum := sha256.Sum256(id)
	return base64.StdEncoding.AppendEncode(dst, sum[:16])
}
