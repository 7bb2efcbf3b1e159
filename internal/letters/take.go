// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// ErrTooManyUnreadable ends a Taker that has passed by more unreadable letters than it can
// remember.
var ErrTooManyUnreadable = errors.New("letters: too many that cannot be read")

// A Taker takes letters out of a directory, in order. It is not for several goroutines at once.
//
// Letters that Next returned are there until Done was called for them and Commit returned. After a
// crash in between they come again, with the same ids.
type Taker struct {
	box    *box   // nil: copies are taken
	output string // "": all
	flat   forward.Inflater

	next  func() (journal.Record, bool, error)
	state *state
	stop  func()

	queue   []passed // what the cursor has not passed yet, in order
	blocked bool     // something that stays stands behind the cursor
	changed bool     // since the last commit
}

// passed is a record that was read.
type passed struct {
	pos    journal.Position
	output string
	key    key
	fate   fate
}

// fate is what becomes of a record.
//
//	waits ──Done──► goes        was      stays      unread
type fate uint8

const (
	waits  fate = iota // Next has returned it
	goes               // Done was called
	was                // it was gone before
	stays              // it is another output's
	unread             // it cannot be read, and stays
)

// Take opens a directory of letters to take out those of one output, or all if output is empty. The
// error wraps ErrLocked when another process has it open. report is Options.Report.
func Take(dir, output string, report func(error)) (*Taker, error) {
	if !IsStore(dir) {
		return nil, fmt.Errorf("letters: %s holds none", dir)
	}
	b, err := openBox(dir, &Options{MaxBytes: defaultMaxBytes, Report: report})
	if err != nil {
		return nil, err
	}
	return &Taker{box: b, output: output, next: b.reader.TryNext, state: &b.state, stop: func() {}}, nil
}

// Copy is Take that leaves everything where it is: Done and Commit do nothing. It takes no lock,
// and ends where the directory ended when it was called.
func Copy(dir, output string) (*Taker, error) {
	l, err := Read(dir)
	if err != nil {
		return nil, err
	}
	t := &Taker{output: output, state: &l.state}
	var failed error
	pull, stop := iter.Pull(func(yield func(journal.Record) bool) { failed = l.Records(yield) })
	t.stop = stop
	t.next = func() (journal.Record, bool, error) {
		rec, ok := pull()
		return rec, ok, failed
	}
	return t, nil
}

// Next returns the next letter; nil at the end. What cannot be read has an Err, stays where it is,
// and must not be given to Done. The Entry keeps no bytes of the Taker: it is the caller's.
func (t *Taker) Next() (*Entry, error) {
	for {
		rec, ok, err := t.next()
		if err != nil || !ok {
			return nil, err
		}
		e := &Entry{Pos: rec.Pos, Bytes: int64(len(rec.Data))}
		e.Letter, e.key, e.Err = decode(append([]byte(nil), rec.Data...))
		p := passed{pos: rec.Pos, output: e.Output, key: e.key}
		switch {
		case t.state.gone(e.Output, rec.Pos):
			p.fate = was
		case t.output != "" && t.output != e.Output:
			p.fate = stays
		default:
			if e.Err == nil {
				e.Err = e.check(&t.flat)
			}
			if e.Err != nil {
				p.fate = unread
			}
		}
		if t.box != nil {
			t.queue = append(t.queue, p)
			if err := t.settle(); err != nil {
				return nil, err
			}
		}
		if p.fate == waits || p.fate == unread {
			return e, nil
		}
	}
}

// check reads all of a letter's entries: a receiver would stumble over what cannot be read, again
// and again.
func (l *Letter) check(z *forward.Inflater) error {
	c := *l.Chunk
	if err := z.Inflate(&c); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	entries := forward.ReadEntries(c.Entries)
	for {
		if _, ok := entries.Next(); !ok {
			break
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// Done notes that a letter is where it was to go. Letters may be done in any order; one goes when
// all before it have.
func (t *Taker) Done(e *Entry) error {
	if t.box == nil {
		return nil
	}
	for i := range t.queue {
		if t.queue[i].pos == e.Pos {
			t.queue[i].fate = goes
			break
		}
	}
	return t.settle()
}

// settle moves the cursor, or the marks of outputs, past what is decided.
func (t *Taker) settle() error {
	s := t.state
	n := 0
	for ; n < len(t.queue) && t.queue[n].fate != waits; n++ {
		p := &t.queue[n]
		switch p.fate {
		case unread:
			t.blocked = true
			if !s.keep(p.pos) {
				return ErrTooManyUnreadable
			}
		case stays:
			t.blocked = true
		case goes:
			s.remember(p.key)
		}
		t.changed = t.changed || p.fate == goes
		switch {
		case p.fate == stays || p.fate == unread:
		case !t.blocked:
			s.advance(p.pos)
			t.changed = true
		case p.fate == goes:
			s.unkeep(p.pos)
			s.marks[p.output] = max(s.marks[p.output], p.pos)
		}
	}
	t.queue = t.queue[:copy(t.queue, t.queue[n:])]
	return nil
}

// Commit makes durable what is done, and frees its room.
func (t *Taker) Commit() error {
	if !t.changed {
		return nil
	}
	if err := t.box.commit(); err != nil {
		return err
	}
	t.changed = false
	return nil
}

// Close lets go of the directory. What was done and not committed is there again.
func (t *Taker) Close() error {
	t.stop()
	if t.box == nil {
		return nil
	}
	return t.box.close()
}
