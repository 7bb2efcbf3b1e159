// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Record is one record as it was appended.
type Record struct {
	Pos  Position // its end
	Data []byte   // valid until the next call of Next or TryNext
}

// Reader follows the journal from a durable cursor. Only records that are durable are seen. Its methods may be called
// from several goroutines, though one that reads is the usual thing; Close may be called at any time.
type Reader struct {
	j *Journal
	c *cursor

	mu     sync.Mutex
	closed chan struct{}
	seg    *segment // being read; nil before the first record
	off    int64    // in seg
	pos    Position // end of the last record read
	scan   scanner
	failed int // reads in a row that the device refused
}

const readTries = 5 // so many errors of the device are returned before the bytes count as unreadable

// Reader opens the durable cursor of that name, where it was committed; a new one starts at the oldest record. A name can be open once.
func (j *Journal) Reader(name string) (*Reader, error) {
	file, err := cursorFile(name)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil, ErrClosed
	}
	c := j.cursors[name]
	if c != nil && c.open {
		j.mu.Unlock()
		return nil, fmt.Errorf("journal: cursor %q is open already", name)
	}
	r := &Reader{j: j, closed: make(chan struct{})}
	if c == nil {
		c = &cursor{name: name, path: j.path(file), open: true}
		// Held before it exists, so that nothing is freed that it is to read.
		c.at.Store(uint64(j.oldest()))
		j.cursors[name] = c
		j.mu.Unlock()
		c.mu.Lock()
		err := c.write(j, Position(c.at.Load()), nil)
		c.mu.Unlock()
		if err != nil {
			j.mu.Lock()
			delete(j.cursors, name)
			j.mu.Unlock()
			return nil, err
		}
	} else {
		c.open = true
		j.mu.Unlock()
	}
	r.c = c
	r.seek(Position(c.at.Load()))
	return r, nil
}

// oldest is before the oldest record. With mu held.
func (j *Journal) oldest() Position {
	if len(j.segs) > 0 {
		return at(j.segs[0].seq, dataStart)
	}
	return j.end()
}

// seek goes to p. With r.mu held or r not yet shared.
func (r *Reader) seek(p Position) {
	r.pos, r.seg, r.off = p, nil, 0
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	for _, s := range r.j.segs {
		if s.seq == p.seq() {
			r.enter(s, max(p.off(), dataStart))
			return
		}
	}
}

func (r *Reader) enter(s *segment, off int64) {
	r.seg, r.off = s, off
	r.scan.reset(s.file, s.seq, s.nonce)
}

// TryNext returns the next record if one is there.
func (r *Reader) TryNext() (Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tryNext()
}

func (r *Reader) tryNext() (Record, bool, error) {
	for {
		if r.stopped() {
			return Record{}, false, ErrClosed
		}
		limit, ok := r.limit()
		if !ok {
			return Record{}, false, nil
		}
		kind, data, start, end, err := r.scan.record(r.off, limit)
		switch {
		case err == nil:
			r.off, r.failed = end, 0
			if kind == kindPad {
				continue
			}
			r.pos = at(r.seg.seq, end)
			return Record{r.pos, data}, true, nil
		case errors.Is(err, errEndOfRecord):
			r.off = limit
		case isDamage(err):
			r.failed = 0
			r.skip(start, end, limit, err)
		case r.stopped():
			return Record{}, false, ErrClosed
		default:
			// The device does not give these bytes. That may pass; when it does not, what comes after them must not wait for ever.
			if r.failed++; r.failed > readTries {
				r.failed = 0
				r.j.mu.Lock()
				r.seg.bad = true
				r.j.mu.Unlock()
				r.skip(start, 0, limit, err)
				continue
			}
			return Record{}, false, fmt.Errorf("journal: read %s: %w", r.seg.path, err)
		}
	}
}

func (r *Reader) stopped() bool {
	select {
	case <-r.closed:
		return true
	case <-r.j.done:
		return true
	default:
		return false
	}
}

// limit returns up to where r.seg may be read, going on to the next segment at the end of one. It is false when there is nothing to read.
func (r *Reader) limit() (int64, bool) {
	synced := r.j.Synced()
	for {
		if r.seg != nil {
			if synced.seq() == r.seg.seq {
				return synced.off(), r.off < synced.off()
			}
			if end := r.seg.end.Load(); r.off < end {
				return end, true
			}
		}
		if !r.advance(synced) {
			return 0, false
		}
	}
}

// advance goes to the next segment that has something durable.
func (r *Reader) advance(synced Position) bool {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	after := r.pos.seq()
	if r.seg != nil {
		after = r.seg.seq + 1
	}
	i, _ := slices.BinarySearchFunc(r.j.segs, after, func(s *segment, seq uint32) int { return int(int64(s.seq) - int64(seq)) })
	if i == len(r.j.segs) || synced < at(r.j.segs[i].seq, dataStart) {
		return false
	}
	r.enter(r.j.segs[i], dataStart)
	return true
}

// skip goes to the next whole record after damage at start, and has the damage reported and set aside once.
func (r *Reader) skip(start, end, limit int64, cause error) {
	next, ok := r.scan.after(start, end, limit, r.stopped)
	if r.stopped() {
		return
	}
	if !ok {
		next = limit
	}
	r.j.hole(r.seg.seq, r.seg.nonce, r.seg.path, r.seg.file, start, next, cause)
	r.off = next
}

// Next returns the next record, waiting for one to become durable. While it waits the journal syncs soon what is appended without Sync.
func (r *Reader) Next(ctx context.Context) (Record, error) {
	for {
		rec, ok, err := r.TryNext()
		if ok || err != nil {
			return rec, err
		}
		if err := r.Wait(ctx); err != nil {
			return Record{}, err
		}
	}
}

// Wait returns nil when there may be another record.
func (r *Reader) Wait(ctx context.Context) error {
	j := r.j
	for {
		// The channel first, then the look: a sync in between closes it.
		j.mu.Lock()
		if j.more == nil {
			j.more = make(chan struct{})
		}
		c := j.more
		j.mu.Unlock()
		r.mu.Lock()
		_, ok := r.limit()
		r.mu.Unlock()
		if ok {
			return nil
		}
		j.mu.Lock()
		j.waiting++
		if j.err == nil && !j.lazyAt.IsZero() {
			j.syncBy(lazySync)
		}
		j.mu.Unlock()
		var err error
		select {
		case <-c:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-r.closed:
			err = ErrClosed
		case <-j.done:
			err = ErrClosed
		}
		j.mu.Lock()
		j.waiting--
		j.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// SkipTo moves without reading to p: the end of a record, not before what was committed and not beyond what is durable.
func (r *Reader) SkipTo(p Position) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped() {
		return ErrClosed
	}
	if p > r.j.Synced() || p < Position(r.c.at.Load()) {
		return fmt.Errorf("journal: position %v is not between the cursor's %v and the last synced %v", p, Position(r.c.at.Load()), r.j.Synced())
	}
	r.seek(p)
	return nil
}

// Commit makes p, which must have been read or skipped to, and an opaque state durable: after a crash the Reader of this name starts behind
// p with this state, or with an earlier commit if this one did not return. What all cursors have passed is freed.
func (r *Reader) Commit(p Position, state []byte) error {
	r.mu.Lock()
	pos := r.pos
	r.mu.Unlock()
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.stopped() {
		return ErrClosed
	}
	if p > pos || p < Position(c.at.Load()) {
		return fmt.Errorf("journal: commit of position %v, which is not between the last commit %v and what was read %v", p, Position(c.at.Load()), pos)
	}
	before := Position(c.at.Load())
	if err := c.write(r.j, p, state); err != nil {
		return err
	}
	if p != before {
		r.j.mu.Lock()
		r.j.release()
		r.j.mu.Unlock()
	}
	return nil
}

// Committed is the last durable position and a copy of its state.
func (r *Reader) Committed() (Position, []byte) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return Position(r.c.at.Load()), slices.Clone(r.c.state)
}

// Pos is the end of the last record read.
func (r *Reader) Pos() Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pos
}

// Close lets the name be opened again. The cursor stays, and holds what it has not passed. Next and Wait return ErrClosed.
func (r *Reader) Close() error {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	select {
	case <-r.closed:
	default:
		close(r.closed)
		r.c.open = false
	}
	return nil
}
