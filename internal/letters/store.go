// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/journal"
)

var (
	// ErrFull says that the store has no room. What it has taken stays.
	ErrFull = errors.New("letters: full")
	// ErrClosed is the answer of a store after Close.
	ErrClosed = errors.New("letters: closed")
)

const (
	maxKnown  = 128 << 10 // letters that are compared with what is put
	maxReason = 4 << 10   // bytes
)

// DroppedError tells Report that the oldest letters were given up for new ones.
type DroppedError struct{ Letters, Events int64 }

func (e *DroppedError) Error() string {
	return fmt.Sprintf("letters: full: dropped the oldest: %d letters with %d events", e.Letters, e.Events)
}

// Stats is what a store holds, and what became of the rest.
type Stats struct {
	Letters int64 // that are there
	Events  int64 // in them
	Bytes   int64 // of their records
	Dropped int64 // events that were given up since Open
}

// A Store takes letters. Its methods may be called at the same time.
//
// Nothing is opened before the first letter, and no lock taken; a few seconds after the last one
// that is so again. Lock order: turn, mu.
type Store struct {
	dir string
	opt Options

	active atomic.Int32 // calls of Put that have not returned

	turn chan struct{} // holds one while somebody has what follows, up to mu
	idle *time.Timer   // has the journal closed when nothing was put for idleAfter
	used time.Time     // the last Put
	box  *box          // nil before the first letter
	done bool          // closed
	flat forward.Inflater
	// known is where letters lie that might be put again, order the same in order of their coming:
	// a circle when it is full.
	known  map[key]journal.Position
	order  []key
	oldest int

	mu    sync.Mutex
	stats Stats
}

// Open counts what an earlier run has left in dir, which need not exist.
func Open(dir string, o *Options) (*Store, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opt: opt, turn: make(chan struct{}, 1)}
	if IsStore(dir) {
		if err := s.look(func(key, journal.Position) {}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// look counts what is there, and calls learn with all keys. The caller has the turn, or is alone.
func (s *Store) look(learn func(key, journal.Position)) error {
	l, err := Read(s.dir)
	if err != nil {
		return err
	}
	var n Stats
	err = l.each(func(e *Entry) bool {
		learn(e.key, e.Pos) // those that are gone, too: their segment may still be there
		if !e.gone {
			n.add(e.Events(), e.Bytes)
		}
		return true
	})
	for _, k := range l.state.recent {
		learn(k, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = Stats{Letters: n.Letters, Events: n.Events, Bytes: n.Bytes, Dropped: s.stats.Dropped}
	return err
}

func (n *Stats) add(events int, bytes int64) {
	n.Letters++
	n.Events += int64(events)
	n.Bytes += bytes
}

// learn notes a letter that may be put again.
func (s *Store) learn(k key, p journal.Position) {
	if k == (key{}) { // the record does not say
		return
	}
	if _, ok := s.known[k]; ok {
		s.known[k] = max(s.known[k], p)
		return
	}
	if len(s.order) < maxKnown {
		s.order = append(s.order, k)
	} else {
		delete(s.known, s.order[s.oldest])
		s.order[s.oldest] = k
		s.oldest = (s.oldest + 1) % maxKnown
	}
	s.known[k] = p
}

// Stats tells what is there now. Before the first Put that is what Open found.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Put stores letters, those that are stored already left out, and returns nil when all are on the
// disk. It keeps none of their bytes. A letter that is larger than the whole store is dropped,
// counted and told.
//
// After an error some of them may be stored; put again they are recognised. The error wraps
// ErrFull, ErrLocked (a replay takes letters out just then; later it works),
// ErrClosed, that of ctx, or one of the disk.
func (s *Store) Put(ctx context.Context, letters ...Letter) error {
	if len(letters) == 0 {
		return nil
	}
	s.active.Add(1)
	defer s.active.Add(-1)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	last, err := s.append(ctx, letters)
	b := s.box
	s.restLater()
	<-s.turn
	if err != nil {
		return err
	}
	if err := b.journal.Sync(ctx, last); err != nil {
		return s.wrap(err)
	}
	return nil
}

// append puts letters into the journal and returns the end of the last one. The caller has the
// turn.
func (s *Store) append(ctx context.Context, letters []Letter) (last journal.Position, err error) {
	if s.done {
		return 0, ErrClosed
	}
	if s.box == nil {
		if s.box, err = openBox(s.dir, &s.opt); err != nil {
			return 0, fmt.Errorf("letters: %w", err)
		}
		s.known, s.order, s.oldest = map[key]journal.Position{}, nil, 0
		if err := s.look(s.learn); err != nil { // the rest of it is known
			s.opt.Report(fmt.Errorf("letters: reading what is there: %w", err))
		}
	}
	for i := range letters {
		l := letters[i]
		if l.Time.IsZero() {
			l.Time = time.Now()
		}
		l.Reason = oneLine(l.Reason)
		k := keyOf(&l, &s.flat)
		if p, ok := s.known[k]; ok {
			last = max(last, p)
			continue
		}
		head, body, tail := encode(&l, k, idOf(s.box.state.store, k))
		p, err := s.box.journal.Append(head, body, tail)
		for errors.Is(err, journal.ErrFull) && s.opt.DropOldest {
			dropped, dropErr := s.dropOldest(ctx)
			if dropErr != nil {
				return 0, fmt.Errorf("%w: making room: %w", ErrFull, dropErr)
			}
			if !dropped {
				break
			}
			p, err = s.box.journal.Append(head, body, tail)
		}
		if errors.Is(err, journal.ErrTooLarge) { // it would hold up its output for ever
			n := int64(l.eventsOf())
			s.mu.Lock()
			s.stats.Dropped += n
			s.mu.Unlock()
			s.opt.Report(codes.LettersDropped.Errorf("letters: dropped a letter of %d events, which is larger than the whole store: %s refused it: %s", n, l.Output, l.Reason))
			continue
		}
		if err != nil {
			return 0, s.wrap(err)
		}
		last = max(last, p)
		s.learn(k, p)
		s.mu.Lock()
		s.stats.add(l.eventsOf(), int64(len(head)+len(body)+len(tail)))
		s.mu.Unlock()
	}
	return last, nil
}

// eventsOf is the number of entries, before encode.
func (l *Letter) eventsOf() int {
	if l.Entries != nil {
		return len(l.Entries)
	}
	return l.Chunk.Events
}

// oneLine makes a reason fit for a table.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + " …"
	}
	return s
}

// wrap gives errors of the journal their name here.
func (s *Store) wrap(err error) error {
	switch {
	case errors.Is(err, journal.ErrFull):
		return ErrFull
	case errors.Is(err, journal.ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("letters: %w", err)
}

// dropOldest gives up what lies in the oldest segment, or reports that nothing is left. The caller
// has the turn.
func (s *Store) dropOldest(ctx context.Context) (bool, error) {
	b := s.box
	// The reader sees what is synced.
	if err := b.journal.Sync(ctx, b.journal.Stats().Last); err != nil {
		return false, err
	}
	var gone Stats
	var keys []key
	first, last := journal.Position(0), journal.Position(0)
	for {
		rec, ok, err := b.reader.TryNext()
		if err != nil {
			return false, errors.Join(err, b.reader.SkipTo(b.state.cursor))
		}
		if !ok || last > 0 && rec.Pos>>32 != first>>32 {
			break
		}
		if last = rec.Pos; first == 0 {
			first = rec.Pos
		}
		if l, k, err := decode(rec.Data); !b.state.gone(l.Output, rec.Pos) {
			gone.add(l.Events(), int64(len(rec.Data)))
			if err == nil {
				keys = append(keys, k)
			}
		}
	}
	if last == 0 {
		return false, nil
	}
	if err := b.passTo(last, keys); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.stats.Letters -= gone.Letters
	s.stats.Events -= gone.Events
	s.stats.Bytes -= gone.Bytes
	s.stats.Dropped += gone.Events
	s.mu.Unlock()
	if gone.Letters > 0 {
		s.opt.Report(codes.LettersDropped.Errorf("%w", &DroppedError{gone.Letters, gone.Events}))
	}
	return true, nil
}

// idleAfter is how long a store without new letters keeps others from taking letters out.
const idleAfter = 5 * time.Second

// restLater has the journal closed after a while. The caller has the turn.
func (s *Store) restLater() {
	s.used = time.Now()
	if s.idle == nil {
		s.idle = time.AfterFunc(idleAfter, s.rest)
	}
}

// rest closes the journal if nothing was put for long: a replay may take letters out now, while the
// collector runs. The next Put opens it again.
func (s *Store) rest() {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.idle = nil
	if s.done || s.box == nil {
		return
	}
	if left := idleAfter - time.Since(s.used); left > 0 || s.active.Load() > 0 {
		s.idle = time.AfterFunc(max(left, idleAfter/8), s.rest)
		return
	}
	err := s.box.close()
	s.box = nil
	if err != nil {
		s.opt.Report(fmt.Errorf("letters: %w", err))
	}
}

// Close lets go of the directory. It may be called more than once, and waits for the disk.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.idle != nil {
		s.idle.Stop()
	}
	if s.done || s.box == nil {
		s.done = true
		return nil
	}
	s.done = true
	return s.box.close()
}
