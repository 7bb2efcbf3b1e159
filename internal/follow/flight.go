// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A Recent is a chunk that is still in memory: what was appended as one record.
type Recent struct {
	End   journal.Position
	Chunk *forward.Chunk         // its entries are not compressed; shared and read-only until Release
	Held  interface{ Release() } // called once, perhaps from a goroutine of the output's
}

// A flight is a record from the journal until the cursor may pass it.
type flight struct {
	f         *Follower
	gen       int // of the output that has it
	end       journal.Position
	chunk     *forward.Chunk // own, or a recent one
	own       forward.Chunk
	data      []byte                 // the record
	entries   []byte                 // of own, if they were compressed
	id        []byte                 // of own, if it was made here
	held      interface{ Release() } // of a recent chunk
	bytes     int64
	result    output.Result
	done      bool
	broken    bool                // the record is no chunk, or what follows of it
	condemned bool                // it was not submitted: the process died on it
	part      bool                // more of the record follows
	first     int                 // which entry of the record is the first
	number    int                 // which piece of the record
	long      *forward.Long       // the one event of chunk, which has no entries then; nil: it is an ordinary one
	turn      func()              // ends the turn of a large event
	land      func(output.Result) // landed, made once
}

// flights are the records between the finished prefix and the end of what was read, and memory for
// the next ones.
type flights struct {
	window   queue
	bytes    int64     // of what is in the window
	inFlight int       // of the window; the others are done
	spare    []*flight // to be used again
	room     int64     // buffers of the window's flights and the spare ones
	landed   []*flight // as taken from the inbox
	inflater forward.Inflater
	pieces   forward.Pieces
	parted   bool // the output has a part of a record that is beyond the finished prefix
}

// flightKeeps is the largest buffer that a flight keeps for its next record.
const flightKeeps = 1 << 20

// isFull says that no more may be submitted before something is done.
func (f *Follower) isFull() bool {
	s := &f.step
	return s.inFlight > 0 && (s.window.len() >= f.cfg.Chunks || s.bytes >= f.cfg.Bytes)
}

func (f *Follower) newFlight() *flight {
	s := &f.step
	if n := len(s.spare); n > 0 {
		x := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return x
	}
	x := &flight{f: f}
	x.land = x.landed
	return x
}

// size is what a flight's buffers take.
func (x *flight) size() int64 { return int64(cap(x.data) + cap(x.entries)) }

// recycle gives a flight's memory back.
func (f *Follower) recycle(x *flight) {
	s := &f.step
	if x.held != nil {
		x.held.Release()
		x.own = forward.Chunk{Tag: x.own.Tag} // it may share the bytes
	}
	x.endTurn()
	x.chunk, x.held, x.result, x.bytes, x.done, x.broken = nil, nil, output.Result{}, 0, false, false
	x.part, x.condemned, x.first, x.turn, x.number, x.long = false, false, 0, nil, 0, nil
	// Large records come to all flights in turn, and each would keep room for them.
	if n := x.size(); n > flightKeeps || s.room > 2*f.cfg.Bytes {
		s.room -= n
		x.data, x.entries, x.own = nil, nil, forward.Chunk{Tag: x.own.Tag}
	}
	if len(s.spare) < f.cfg.Chunks {
		s.spare = append(s.spare, x)
	} else {
		s.room -= x.size()
	}
}

// push puts a flight at the end of the window.
func (s *flights) push(x *flight) {
	s.window.push(x)
	s.bytes += x.bytes
}

// pop takes the first flight of the window.
func (s *flights) pop() *flight {
	x := s.window.pop()
	s.bytes -= x.bytes
	return x
}

// landed is what the output calls.
func (x *flight) landed(r output.Result) {
	x.endTurn()
	if !x.f.inbox.put(x, r) && x.held != nil { // the output was given up, and did not say so in time
		x.held.Release()
	}
}

// errTwice says that an output breaks its contract.
var errTwice = errors.New("the output says of a chunk twice that it is done; only the first counts")

// once is land for outputs that may call it twice: a flight that was recycled has another chunk.
func (f *Follower) once(land func(output.Result)) func(output.Result) {
	var done atomic.Bool
	return func(r output.Result) {
		if done.Swap(true) {
			f.cfg.Report(errTwice)
			return
		}
		land(r)
	}
}

// next reads a record and submits it. It reports false when there is none.
func (f *Follower) next() (more bool, err error) {
	s := &f.step
	x := f.newFlight()
	read := f.read
	if f.guilty() {
		read = f.condemn
	}
	if ok, err := read(x); !ok {
		f.recycle(x)
		return false, err
	}
	if s.taken == s.committed {
		s.since = time.Now()
	}
	from := s.taken
	s.taken = x.end
	s.volume += x.bytes + 1
	s.push(x)
	if x.broken || x.condemned {
		s.cutting = false
		x.done = true
		f.advance()
		return true, nil
	}
	switch {
	case f.cfg.Identify == nil:
	case x.part || x.first > 0:
		x.id = s.split.identify(f, x.id[:0])
		x.own.ID, x.own.IDBin, x.own.Own = x.id, false, true
	case x.chunk.ID == nil || !x.chunk.Own:
		if x.chunk != &x.own {
			x.own = *x.chunk
			x.chunk = &x.own
		}
		x.id = f.cfg.Identify(x.id[:0], from, x.end)
		x.own.ID, x.own.IDBin, x.own.Own = x.id, false, true
	}
	s.cutting = s.cutting && x.part
	if s.inFlight == 0 {
		f.moved.Store(time.Now().UnixNano())
	}
	s.inFlight++
	f.sent.events.Add(int64(x.chunk.Events))
	f.sent.chunks.Add(1)
	x.gen = s.gen
	land := x.land
	if f.cfg.Guard {
		land = f.once(land)
	}
	switch {
	case x.long != nil:
		s.longer.SubmitLong(s.tokenOf(x), x.chunk, x.long, land)
	case s.at != nil:
		s.at.SubmitAt(s.tokenOf(x), x.chunk, land)
	default:
		s.out.Submit(x.chunk, land)
	}
	return true, nil
}

// read fills a flight with the next chunk: from memory if it is there, else from the journal.
func (f *Follower) read(x *flight) (ok bool, err error) {
	had := x.size()
	if f.step.cutting {
		f.filled(x, had, f.piece(x))
		return true, nil
	}
	whole := f.cfg.Opaque || f.step.whole
	if f.cfg.Recent != nil {
		if r, ok := f.cfg.Recent(f.step.taken); ok {
			if err := f.cfg.Reader.SkipTo(r.End); err != nil {
				r.Held.Release()
				return false, err
			}
			if !whole && int64(len(r.Chunk.Entries)) > f.cfg.Piece {
				f.filled(x, had, f.cutRecent(x, r))
				return true, nil
			}
			x.end, x.chunk, x.held = r.End, r.Chunk, r.Held
			x.bytes = int64(len(x.chunk.Entries))
			return true, nil
		}
	}
	most := int64(0) // what may be cut stays with the reader: pieces outlive their flights
	if whole {
		most = f.cfg.Piece
	}
	rec, ok, err := f.cfg.Reader.TryNextTo(x.data, most)
	if err != nil || !ok {
		f.endSplit()
		return false, err
	}
	x.end, x.chunk = rec.Pos, &x.own
	if !whole && int64(len(rec.Data)) > f.cfg.Piece {
		err = f.cutRecord(x, rec, forward.Chunk{})
	} else {
		if rec.Own {
			x.data = rec.Data
		} else {
			x.data = append(x.data[:0], rec.Data...)
		}
		x.bytes = int64(len(x.data))
		err = x.own.Parse(x.data)
		switch {
		case err != nil || x.own.Compressed == nil || f.cfg.Opaque:
		case whole:
			err = f.inflate(x)
		default:
			err = f.cutRecord(x, rec, x.own)
		}
	}
	if !f.step.cutting {
		f.endSplit()
	}
	f.filled(x, had, err)
	return true, nil
}

// filled notes what a flight that had so much memory has got.
func (f *Follower) filled(x *flight, had int64, err error) {
	f.step.room += x.size() - had
	if err != nil {
		// The journal's checksum was right, so it was written so: by a newer version, or by a fault
		// of ours.
		x.broken = true
		f.reportBroken(x.end, err)
	}
}

func (f *Follower) reportBroken(end journal.Position, err error) {
	f.cfg.Report(fmt.Errorf("the record that ends at %v is no chunk: %w; left out", end, err))
}

// inflate undoes the compression of a flight's entries. Flights share the decompressors: each would
// need more memory than its chunk.
func (f *Follower) inflate(x *flight) error {
	if x.own.Compressed == nil {
		return nil
	}
	if err := f.step.inflater.Inflate(&x.own); err != nil {
		return err
	}
	x.entries = append(x.entries[:0], x.own.Entries...)
	x.own.Entries = x.entries
	x.bytes += int64(len(x.entries))
	return nil
}

// collect takes back what outputs have finished.
func (f *Follower) collect() {
	s := &f.step
	s.landed = f.inbox.take(s.landed)
	if len(s.landed) == 0 {
		return
	}
	for i, x := range s.landed {
		s.landed[i] = nil
		x.done = true
		s.inFlight--
		s.soon = s.soon || x.result.Soon
		if err := x.result.Err; err != nil && s.broken == nil {
			if !errors.Is(err, output.ErrReopen) {
				err = fmt.Errorf("%w; %w", err, output.ErrReopen)
			}
			s.broken = err
		}
	}
	if s.inFlight == 0 {
		f.moved.Store(0)
	} else {
		f.moved.Store(time.Now().UnixNano())
	}
	f.advance()
}

// advance moves over the longest finished prefix.
func (f *Follower) advance() {
	s := &f.step
	records, bytes := s.window.len(), s.bytes
	for s.window.len() > 0 {
		x := s.window.front()
		if !x.done || x.result.Err != nil {
			break
		}
		s.pop()
		if x.part {
			s.parted = true
			f.count(x)
			f.recycle(x)
			continue
		}
		atStop := s.finished == s.stop && !s.parted
		s.finished, s.parted = x.end, false
		f.count(x)
		switch {
		case x.result.State != nil || !s.resumer:
			f.stopHere(x.result.State, false)
		case (x.broken || x.condemned) && atStop: // the output has nothing that the state does not cover
			f.stopHere(s.state, s.keep)
		}
		f.recycle(x)
	}
	f.progress(records-s.window.len(), bytes-s.bytes)
}

// stopHere says that the cursor may stand at the end of the finished prefix, with this state, or
// with the one that it has.
func (f *Follower) stopHere(state []byte, keep bool) {
	s := &f.step
	s.stop, s.state, s.keep = s.finished, state, keep
	s.passing.add(&s.counts)
	s.counts = Counts{}
}
