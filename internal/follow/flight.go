// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/binary"
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
	Chunk *forward.Chunk // its entries are not compressed; shared and read-only until Release
	Held  interface{ Release() }
}

// A flight is a record from the journal until its output is done with it.
type flight struct {
	f       *Follower
	gen     int // of the output that has it
	end     journal.Position
	chunk   *forward.Chunk // own, or a recent one
	own     forward.Chunk
	data    []byte                 // of own
	entries []byte                 // of own, where they were compressed
	id      []byte                 // of own, where the follower made it
	held    interface{ Release() } // of a recent chunk
	bytes   int64
	result  output.Result
	done    bool
	broken  bool                // the record is no chunk
	land    func(output.Result) // landed, made once
}

func (f *Follower) newFlight() *flight {
	s := &f.step
	if x := s.spare.take(); x != nil {
		return x
	}
	x := &flight{f: f}
	x.land = x.landed
	return x
}

// recycle gives a flight's memory back.
func (f *Follower) recycle(x *flight) {
	if x.held != nil {
		x.held.Release()
		x.own = forward.Chunk{} // it may have the same bytes
	}
	x.chunk, x.held, x.result, x.done, x.broken = nil, nil, output.Result{}, false, false
	if s := &f.step; len(s.spare.all) < f.cfg.Chunks {
		s.spare.put(x, f.cfg.Bytes)
	}
}

// landed is what the output calls.
func (x *flight) landed(r output.Result) {
	f := x.f
	f.inbox.Lock()
	if x.gen != f.inbox.gen { // the output was given up, and did not say so in time
		f.inbox.Unlock()
		if x.held != nil {
			x.held.Release()
		}
		return
	}
	x.result = r
	f.inbox.done = append(f.inbox.done, x)
	f.inbox.left--
	var awake func()
	if f.inbox.left <= 0 || r.Err != nil {
		awake, f.inbox.awake = f.inbox.awake, nil
	}
	f.inbox.Unlock()
	if awake != nil {
		awake()
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
	if ok, err := f.read(x); !ok {
		f.recycle(x)
		return false, err
	}
	if s.taken == s.committed {
		s.since = time.Now()
	}
	from := s.taken
	s.taken = x.end
	s.volume += x.bytes + 1
	s.window.push(x)
	if x.broken {
		x.done = true
		f.advance()
		return true, nil
	}
	if s.inFlight == 0 {
		f.moved.Store(time.Now().UnixNano())
	}
	if f.cfg.Identify != nil && (x.chunk.ID == nil || !x.chunk.Own) {
		if x.chunk != &x.own {
			x.own = *x.chunk
			x.chunk = &x.own
		}
		x.id = f.cfg.Identify(x.id[:0], from, x.end)
		x.own.ID, x.own.IDBin, x.own.Own = x.id, false, true
	}
	land := x.land
	if f.cfg.Guard {
		land = f.once(land)
	}
	x.gen = s.gen
	s.inFlight++
	s.bytes += x.bytes
	f.sent.events.Add(int64(x.chunk.Events))
	f.sent.chunks.Add(1)
	if s.at != nil {
		binary.BigEndian.PutUint64(s.token[:], uint64(x.end))
		s.at.SubmitAt(s.token[:], x.chunk, land)
	} else {
		s.out.Submit(x.chunk, land)
	}
	return true, nil
}

// read fills a flight with the next chunk: from memory if it is there, else from the journal.
func (f *Follower) read(x *flight) (ok bool, err error) {
	if f.cfg.Recent != nil {
		if r, ok := f.cfg.Recent(f.step.taken); ok {
			if err := f.cfg.Reader.SkipTo(r.End); err != nil {
				r.Held.Release()
				return false, err
			}
			x.end, x.chunk, x.held = r.End, r.Chunk, r.Held
			x.bytes = int64(len(x.chunk.Entries))
			return true, nil
		}
	}
	rec, ok, err := f.cfg.Reader.TryNext()
	if err != nil || !ok {
		return false, err
	}
	x.end, x.chunk = rec.Pos, &x.own
	x.data = append(x.data[:0], rec.Data...)
	x.bytes = int64(len(x.data))
	err = x.own.Parse(x.data)
	if err == nil && !f.cfg.Opaque {
		err = f.inflate(x)
	}
	if err != nil {
		// The journal's checksum was right, so it was written so: by a newer version, or by a fault
		// of ours.
		x.broken = true
		f.cfg.Report(fmt.Errorf("the record that ends at %v is no chunk: %w; left out", rec.Pos, err))
	}
	return true, nil
}

// ownEntries is from how many bytes on entries get memory of their own instead of being copied.
const ownEntries = 1 << 20

// inflate undoes the compression of a flight's chunk. All flights have one Inflater, since it takes
// much memory.
func (f *Follower) inflate(x *flight) error {
	s := &f.step
	compressed := x.own.Entries == nil
	if err := s.inflater.Inflate(&x.own); err != nil {
		return err
	}
	switch entries := x.own.Entries; {
	case !compressed:
	case len(entries) >= ownEntries:
		x.entries, s.inflater = entries, forward.Inflater{}
	default:
		x.entries = append(x.entries[:0], entries...)
		x.own.Entries = x.entries
	}
	x.bytes = max(x.bytes, int64(len(x.own.Entries)))
	return nil
}

// collect takes back what outputs have finished.
func (f *Follower) collect() {
	s := &f.step
	f.inbox.Lock()
	s.landed, f.inbox.done = f.inbox.done, s.landed[:0]
	f.inbox.Unlock()
	if len(s.landed) == 0 {
		return
	}
	for i, x := range s.landed {
		s.landed[i] = nil
		x.done = true
		s.inFlight--
		s.bytes -= x.bytes
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
	for s.window.len() > 0 {
		x := s.window.front()
		if !x.done || x.result.Err != nil {
			return
		}
		s.window.pop()
		atStop := s.finished == s.stop
		s.finished = x.end
		f.count(x)
		switch {
		case x.result.State != nil || !s.resumer:
			f.stopHere(x.result.State, false)
		case x.broken && atStop: // the output has nothing that the state does not cover
			f.stopHere(s.state, s.keep)
		}
		f.recycle(x)
	}
}

// stopHere says that the cursor may stand at the end of the finished prefix, with this state, or
// with the one that it has.
func (f *Follower) stopHere(state []byte, keep bool) {
	s := &f.step
	s.stop, s.state, s.keep = s.finished, state, keep
	s.passing.add(&s.counts)
	s.counts = Counts{}
}
