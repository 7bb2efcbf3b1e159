// SPDX-License-Identifier: Apache-2.0

package follow

import (
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
	chunk  forward.Chunk // the record; its bytes are the reader's, which reads no further meanwhile
	pieces *forward.Pieces
	from   journal.Position // where the record before it ends
	end    journal.Position
	taken  int // entries so far
	part   int // the next
	turn   func()
}

// cut begins with a record that is long, or compressed and perhaps long, and fills a flight with its
// first piece, which may be all of it. small is a compressed one as the flight has it.
func (f *Follower) cut(x *flight, rec journal.Record, small forward.Chunk) error {
	s := &f.step
	p := &s.split
	*p = split{chunk: forward.Chunk{Tag: p.chunk.Tag}, from: s.taken, end: rec.Pos, pieces: &s.pieces}
	if err := p.chunk.Parse(rec.Data); err != nil {
		return err
	}
	p.pieces.Begin(&s.inflater, &p.chunk, int(f.cfg.Piece))
	if f.cfg.Turn != nil && p.pieces.Large == nil {
		p.pieces.Large = func() { s.split.turn = f.cfg.Turn.Take(s.ctx) }
	}
	s.cutting = true
	err := f.piece(x)
	if err == nil && !x.part && small.Compressed != nil { // it may leave as it came
		small.Entries = x.own.Entries
		x.own = small
		x.bytes += int64(len(x.data))
	}
	return err
}

// piece fills a flight with the next piece of the split.
func (f *Follower) piece(x *flight) error {
	p := &f.step.split
	entries, n, last, err := p.pieces.Next(x.entries)
	x.entries, x.turn, p.turn = entries, p.turn, nil
	x.end, x.chunk, x.part, x.first = p.end, &x.own, !last, p.taken
	x.bytes = int64(len(entries))
	x.own = forward.Chunk{Tag: p.chunk.Tag, Signal: p.chunk.Signal, Entries: entries, Events: n}
	if p.chunk.Compressed == nil && last && p.part == 0 {
		x.own.ID, x.own.IDBin, x.own.Own = slices.Clone(p.chunk.ID), p.chunk.IDBin, p.chunk.Own
	}
	if last {
		x.own.Events = p.chunk.Events - p.taken
	}
	p.taken += n
	p.part++
	return err
}

// identify appends the id of the piece that was read last.
func (p *split) identify(f *Follower, dst []byte) []byte {
	var room [128]byte
	id := append(room[:0], p.chunk.ID...)
	if p.chunk.ID == nil || !p.chunk.Own {
		id = f.cfg.Identify(room[:0], p.from, p.end)
	}
	id = append(id, 0)
	id = binary.BigEndian.AppendUint32(id, uint32(p.part))
	sum := sha256.Sum256(id)
	return base64.StdEncoding.AppendEncode(dst, sum[:16])
}

// endTurn lets other large events be in memory.
func (x *flight) endTurn() {
	if x.turn != nil {
		x.turn()
	}
}
