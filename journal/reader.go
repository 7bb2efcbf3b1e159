// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// Record is one record as it was appended.
type Record struct {
	Pos  Position // its end
	Data []byte   // valid until the next call of Next or TryNext
	Own  bool     // Data is in the room that was given to TryNextTo, and valid as long as that is
}

// Reader follows the journal from a durable cursor. Only records that are durable are seen. Its
// methods may be called from several goroutines, though one that reads is the usual thing; Close
// may be called at any time.
type Reader struct {
	j *Journal
	c *cursor

	mu     sync.Mutex
	closed chan struct{}
	seg    *segment // being read; nil before the first record
	off    int64    // in seg
	pos    Position // end of the last record read
	scan   scanner
	own    readFile  // of seg
	failed int       // reads in a row that the device refused
	since  time.Time // the first of them
}

// Errors of the device are returned for so long, and at least so often, before the bytes count as
// unreadable. In a segment that has others of the kind, the number alone counts: what is broken at
// many places must not be waited for at each.
const (
	readTries    = 5
	readPatience = time.Minute
)

// seekLocked goes to p. With r.mu held or r not yet shared.
func (r *Reader) seekLocked(p Position) {
	r.pos, r.seg, r.off = p, nil, 0
}

// enter goes to off in s, with a file of its own: the journal keeps open only what it writes to.
func (r *Reader) enter(s *segment, off int64) error {
	f, err := r.j.fs.Open(s.path)
	if err != nil {
		return fmt.Errorf("journal: read: %w", err)
	}
	if !r.hold(f) {
		return ErrClosed
	}
	r.seg, r.off = s, off
	r.scan.reset(f, s.seq, s.nonce)
	return nil
}

// nothing is a file that is gone.
type nothing struct{}

func (nothing) ReadAt([]byte, int64) (int, error) { return 0, errGone }

// hold replaces the open file, unless the reader was closed meanwhile: Close, which does not wait
// for one that reads, closes it then.
func (r *Reader) hold(f File) bool {
	r.j.mu.Lock()
	if f != nil && (r.j.closed || r.own.shut) {
		r.j.mu.Unlock()
		_ = f.Close()
		return false
	}
	old := r.own.file
	r.own.file = f
	r.j.mu.Unlock()
	if old != nil {
		_ = old.Close() // it was only read
	}
	return true
}

// OnLarge has f called from within Next and TryNext before they take memory for a record of more
// than size bytes. It comes before the first of them; f must not call the Reader.
func (r *Reader) OnLarge(size int64, f func()) { r.scan.largeFrom, r.scan.large = size, f }

// Release gives back the memory of a long record: the last one is used no more.
func (r *Reader) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := &r.scan; cap(s.buf) > scanKeep {
		s.buf, s.base = nil, 0
	}
}

// TryNext returns the next record if one is there.
func (r *Reader) TryNext() (Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tryNext()
}

// TryNextTo is TryNext for a caller that keeps the bytes: those of a long record of at most so many
// bytes it reads into room, or into more if that is too small.
func (r *Reader) TryNextTo(room []byte, limit int64) (Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.scan
	s.room, s.roomLimit = room, limit
	rec, ok, err := r.tryNext()
	s.room, s.roomLimit = nil, 0
	return rec, ok, err
}

func (r *Reader) tryNext() (Record, bool, error) {
	for {
		if r.stopped() {
			return Record{}, false, ErrClosed
		}
		limit, ok, err := r.limit()
		if !ok {
			return Record{}, false, err
		}
		kind, data, start, end, err := r.scan.record(r.off, limit)
		switch {
		case err == nil:
			r.off, r.failed = end, 0
			if kind == kindPad {
				continue
			}
			r.pos = at(r.seg.seq, end)
			return Record{Pos: r.pos, Data: data, Own: r.scan.inRoom}, true, nil
		case errors.Is(err, errEndOfRecord):
			r.off = limit
		case isDamage(err):
			r.failed = 0
			r.skip(start, end, limit, err)
		case r.stopped():
			return Record{}, false, ErrClosed
		default:
			// The device does not give these bytes. That may pass; when it does not, what comes
			// after them must not wait for ever.
			if r.gaveUp(r.seg) {
				r.skip(start, 0, limit, err)
				continue
			}
			return Record{}, false, fmt.Errorf("journal: read %s: %w", r.seg.path, err)
		}
	}
}

// gaveUp notes that the device refused bytes of s, and says whether it has done so for long enough.
func (r *Reader) gaveUp(s *segment) bool {
	now := time.Now()
	if r.failed == 0 {
		r.since = now
	}
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	if r.failed++; r.failed <= readTries || !s.bad && now.Sub(r.since) < readPatience {
		return false
	}
	r.failed, s.bad = 0, true
	return true
}

func (r *Reader) stopped() bool {
	select {
	case <-r.closed:
		return true
	default:
		return r.j.over()
	}
}

// limit returns up to where r.seg may be read, going on to the next segment at the end of one. It
// is false when there is nothing to read.
func (r *Reader) limit() (int64, bool, error) {
	synced := r.j.Synced()
	for {
		if r.seg != nil {
			end := r.seg.end.Load()
			switch {
			// A pad is left at most, and the file may be used anew at any time.
			case end != 0 && r.off >= min(end, r.seg.last):
			case synced.seq() == r.seg.seq:
				return synced.off(), r.off < synced.off(), nil
			case r.off < end:
				return end, true, nil
			}
		}
		s, off := r.following(synced)
		if s == nil {
			return 0, false, nil
		}
		if err := r.enter(s, off); err != nil {
			if !errors.Is(err, fs.ErrNotExist) || !r.gaveUp(s) {
				return 0, false, err
			}
			// Somebody removed it: told, and what comes after it must not wait for ever.
			end := s.end.Load()
			if end == 0 { // it is being appended to
				end = synced.off()
			}
			r.seg, r.off = s, max(off, end)
			r.scan.reset(nothing{}, s.seq, s.nonce)
			if r.j.holes.first(at(s.seq, off)) {
				r.j.tellHole(&CorruptError{Path: s.path, Offset: off, Length: r.off - off, Err: errGone})
			}
		}
	}
}

// following is the next segment that has something durable, and where to read on in it; nil when
// there is none.
func (r *Reader) following(synced Position) (*segment, int64) {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	from := max(r.pos, at(r.pos.seq(), dataStart))
	if r.seg != nil {
		from = max(from, at(r.seg.seq+1, dataStart))
	}
	for _, s := range r.j.segs {
		if s.seq < from.seq() {
			continue
		}
		off := int64(dataStart)
		if s.seq == from.seq() {
			off = from.off()
		}
		// One that is passed already may be used anew at any time.
		if end := s.end.Load(); end != 0 && off >= min(end, s.last) {
			continue
		}
		if synced <= at(s.seq, off) {
			return nil, 0
		}
		return s, off
	}
	return nil, 0
}

// skip goes to the next whole record after damage at start, and has the damage reported and set
// aside once.
func (r *Reader) skip(start, end, limit int64, cause error) {
	next, ok := r.scan.after(start, end, limit, r.stopped)
	if r.stopped() {
		return
	}
	if !ok {
		next = limit
	}
	r.j.hole(r.seg.seq, r.seg.nonce, r.seg.path, r.scan.src, start, next, cause)
	r.off = next
}

// Next returns the next record, waiting for one to become durable. While it waits the journal syncs
// soon what is appended without Sync.
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
		_, ok, err := r.limit()
		r.mu.Unlock()
		if ok || err != nil {
			return err
		}
		j.mu.Lock()
		j.waiting++
		if j.err == nil && !j.lazyAt.IsZero() {
			j.syncByLocked(lazySync)
		}
		j.mu.Unlock()
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

// SkipTo moves without reading to p: the end of a record, not before what was committed and not
// beyond what is durable.
func (r *Reader) SkipTo(p Position) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped() {
		return ErrClosed
	}
	if p > r.j.Synced() || p < Position(r.c.at.Load()) {
		return fmt.Errorf("journal: position %v is not between the cursor's %v and the last synced %v", p,
			Position(r.c.at.Load()), r.j.Synced())
	}
	if r.seg != nil && p.seq() == r.seg.seq && p.off() >= r.off {
		r.pos, r.off = p, p.off() // the file stays open
		return nil
	}
	r.seekLocked(p)
	return nil
}

// Pos is the end of the last record read.
func (r *Reader) Pos() Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pos
}

// Close lets the name be opened again. The cursor stays, and holds what it has not passed. Next and
// Wait return ErrClosed.
func (r *Reader) Close() error {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	if r.own.shut {
		return nil
	}
	r.own.shut = true
	close(r.closed)
	r.c.open = false
	delete(r.j.reading, &r.own)
	return r.own.dropLocked()
}
