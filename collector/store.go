// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/journal"
)

// Ack says what an ack promises.
type Ack string

// The promises. Each costs more than the one before it.
const (
	// AckJournaled: the chunk survives this process, not a power cut.
	AckJournaled Ack = "journaled"
	// AckSynced: the chunk is on the disk. The default.
	AckSynced Ack = "synced"
	// AckDelivered: every output has confirmed the chunk.
	AckDelivered Ack = "delivered"
)

// store is the Handler of all inputs: it puts chunks into the journal, once.
type store struct {
	journal   *journal.Journal
	repeats   *repeats
	recent    *recent
	ack       Ack
	delivered *deliveries
	reporter  *reporter
	books     atomic.Pointer[books]
	failing   failing
	// The output for which the journal keeps most, and how much, for the log; nil if for none.
	holder func() []any
	held   atomic.Pointer[heldError] // an output is so far behind that senders wait for it; nil: none is
	taking context.Context           // ends when the time to drain is over: inputs may put nothing in any more
	short  chan struct{}             // gets something when the journal is full; holds one; may be nil

	// gate is held for reading while a record is appended and counted. Under it for writing the
	// journal's end and what was stored are of one moment: ends come and go there.
	gate sync.RWMutex

	letters  *letters.Store
	maxEvent int64 // bytes; a larger one is set aside

	tails        tails
	singleEvents singleEventSenders
	groups       sync.Pool // *group
}

// storeCall is what one call of ServeGroup works on, kept for its memory.
type storeCall struct {
	todo       []*forward.Chunk // what is left of the group
	inFlight   *inFlightGroup   // the chunks in todo that have an id, in order, up to one that is busy
	account    *account
	from       origin
	head, tail []byte
	stored     []stored         // for those that follow
	last       journal.Position // the acks wait for this
	asked      bool             // some chunk wants an ack

	bookmark *bookmark // of position
	position []byte    // for the record of the last chunk; nil: none, or it is stored
}

// origin is where chunks come from, as far as repeats are told by it.
type origin struct {
	peer string
	conn uint64
}

// originOf is the origin of what a sender sends; nil: nothing is known.
func originOf(sender *forward.Sender) origin {
	if sender == nil {
		return origin{}
	}
	return origin{sender.Peer, sender.Conn}
}

// ServeForward implements forward.Handler.
func (s *store) ServeForward(ctx context.Context, c *forward.Chunk) error {
	wait, err := s.ServeGroup(ctx, []*forward.Chunk{c})
	if err != nil || wait == nil {
		return err
	}
	return wait(ctx)
}

// ServeGroup implements forward.GroupHandler. It returns when the chunks are
// written to the journal, and blocks while the journal cannot take them: that
// is the back-pressure on the sender. It gives up only with ctx.
func (s *store) ServeGroup(ctx context.Context, chunks []*forward.Chunk) (func(context.Context) error, error) {
	sender := forward.SenderOf(ctx)
	account, from := s.accountOf(sender), originOf(sender)
	last, asked, err := s.take(ctx, account, from, chunks, nil, nil)
	if err != nil {
		return nil, err
	}
	if s.ack != AckJournaled {
		s.singleEvents.observe(chunks, from.peer, account.name, s.reporter)
	}
	if !asked {
		return nil, nil
	}
	return s.waiting(last), nil
}

// waiting is what waits until the chunks up to last, which are flushed, are what an ack promises;
// nil if they are.
func (s *store) waiting(last journal.Position) func(context.Context) error {
	switch s.ack {
	case AckJournaled:
		return nil
	case AckDelivered:
		return func(ctx context.Context) error { return s.delivered.wait(ctx, last) }
	}
	return func(ctx context.Context) error { return s.sync(ctx, last) }
}

// take stores chunks of an input, and with the last of them a position, if there is one. Acks wait
// for last; asked says whether some chunk wants one.
func (s *store) take(ctx context.Context, a *account, from origin, chunks []*forward.Chunk, mark *bookmark,
	position []byte,
) (last journal.Position, asked bool, err error) {
	g, _ := s.groups.Get().(*storeCall)
	if g == nil {
		g = &storeCall{inFlight: new(inFlightGroup)}
	}
	g.last, g.asked, g.account, g.from, g.bookmark, g.position = 0, false, a, from, mark, position
	g.todo = append(g.todo[:0], chunks...)
	for all := g.todo; len(g.todo) > 0; {
		if err := s.storeOnce(ctx, g); err != nil {
			for _, c := range g.todo {
				g.account.refused.add(c)
			}
			return 0, false, err // the group may still be in flight: g is not used again
		}
		if len(g.todo) == 0 {
			g.todo = all // for its memory
			break
		}
	}
	if g.position != nil { // the last chunks are repeats, so what comes again after a crash is known by its ids
		mark.note(position, g.last)
	}
	last, asked = g.last, g.asked
	g.bookmark, g.position = nil, nil
	s.groups.Put(g)
	return last, asked, nil
}

// storeOnce stores what is fresh in g.todo, up to a chunk that another
// connection is storing just then: it waits for that one, and leaves it and
// what stands behind it in g.todo. What overtook it would be out of order.
//
// On an error, fingerprints that were begun stay in flight: the process is about to
// end, what was appended may or may not be written, and an open fingerprint holds the
// repeats cursor back, so that the next start learns from the journal itself.
func (s *store) storeOnce(ctx context.Context, g *storeCall) error {
	f := g.inFlight
	f.candidates = f.candidates[:0]
	for _, c := range g.todo {
		if c.ID != nil {
			f.candidates = append(f.candidates,
				candidate{fingerprint: s.repeats.fingerprint(c, g.from.peer), conn: g.from.conn, uniqueID: c.UniqueID})
		}
	}
	asked := len(f.candidates) > 0
	if asked {
		g.asked = true
		s.repeats.begin(f, s.journal.Synced())
	}
	last, err := s.append(ctx, g)
	if err != nil && !errors.Is(err, journal.ErrTooLarge) {
		return err
	}
	// After a chunk that is too large, what came before it is stored all the same.
	if last > 0 {
		g.last = max(g.last, last)
		if err := s.persist(ctx, func() error { return s.journal.Flush(ctx, last) }); err != nil {
			return err
		}
	}
	// Sync finds out by itself that the file was removed, but has nothing to do for repeats.
	if asked && (s.ack == AckJournaled || last == 0) {
		if err := s.persist(ctx, s.journal.Check); err != nil {
			return err
		}
	}
	if asked {
		s.repeats.finish(f)
	}
	if err != nil || len(g.todo) == 0 {
		return err
	}
	// Only now, with nothing of our own in flight, or two connections could
	// wait for each other.
	select {
	case <-f.candidates[len(f.candidates)-1].done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recentLeast is from how many bytes of entries on a chunk is kept in memory for those that follow.
// To keep and find a smaller one costs more than to read it from the journal, whose pages are in
// memory.
const recentLeast = 1 << 10

// append appends the chunks of g.todo but those that are repeats, up to one
// that another connection is storing just now, and returns the end of the last
// one. It leaves in g.todo what it has not done with.
func (s *store) append(ctx context.Context, g *storeCall) (last journal.Position, err error) {
	next := 0 // candidate
	defer func() {
		s.recent.put(g.stored)
		clear(g.stored)
		g.stored = g.stored[:0]
	}()
	carrier := g.carrier()
	for ; len(g.todo) > 0; g.todo = g.todo[1:] {
		c := g.todo[0]
		var which *candidate
		if c.ID != nil {
			which = &g.inFlight.candidates[next]
			next++
			if which.verdict == repeat {
				g.account.repeated.add(c)
				g.last = max(g.last, which.pos)
				continue
			}
			if which.verdict == busy {
				break
			}
		}
		g.head = c.AppendHead(g.head[:0])
		g.tail = c.AppendTail(g.tail[:0])
		if which != nil {
			g.tail = appendFingerprint(g.tail, which.fingerprint[:])
		}
		carries := carrier == c
		if carries {
			g.tail = appendPosition(g.tail, g.bookmark.key, g.position)
		}
		var prev, pos journal.Position
		err = s.persist(ctx, func() (err error) {
			if carries {
				g.bookmark.begin()
			}
			if held := s.held.Load(); held != nil {
				return held
			}
			if prev, pos, err = s.appendAndCount(g, c); errors.Is(err, journal.ErrFull) {
				s.yield(ctx, g.inFlight, last)
			}
			return err
		})
		if carries && err == nil {
			g.bookmark.note(g.position, pos)
			g.position = nil
		} else if carries {
			g.bookmark.giveUp()
		}
		if err != nil {
			return last, err
		}
		if which != nil {
			which.pos = pos
		}
		s.tails.offer(g.account.name, c)
		if c.Entries != nil && (c.Compressed != nil || len(c.Entries) >= recentLeast) {
			g.stored = append(g.stored, stored{prev: prev, pos: pos, chunk: c})
		}
		last = pos
	}
	return last, nil
}

// appendAndCount appends a chunk with the head and tail that it has in g.
func (s *store) appendAndCount(g *storeCall, c *forward.Chunk) (prev, pos journal.Position, err error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if prev, pos, err = s.journal.AppendAfter(g.head, c.Body(), g.tail); err == nil {
		g.account.stored.add(c)
	}
	return prev, pos, err
}

// carrier is the chunk in g.todo whose record is to have the position: the last one that is fresh.
// Behind one that is busy another may be fresh. nil if there is none, or no position.
func (g *storeCall) carrier() *forward.Chunk {
	if g.position == nil {
		return nil
	}
	candidates := g.inFlight.candidates
	i := len(g.todo) - 1
	if n := len(candidates); n > 0 { // then all have an id
		if candidates[n-1].verdict == busy {
			return nil
		}
		for i >= 0 && candidates[i].verdict == repeat {
			i--
		}
	}
	if i < 0 {
		return nil
	}
	return g.todo[i]
}

// yield lets the journal forget what lies before a chunk that waits for room:
// that may be the room of what was appended just before it, up to last.
func (s *store) yield(ctx context.Context, f *inFlightGroup, last journal.Position) {
	if len(f.candidates) > 0 && s.journal.Flush(ctx, last) == nil {
		s.repeats.yield(f, s.journal.Synced())
	}
}

// sync waits until p is durable.
func (s *store) sync(ctx context.Context, p journal.Position) error {
	return s.persist(ctx, func() error { return s.journal.Sync(ctx, p) })
}

// persist repeats do while the journal is full or its disk fails, and says so.
// What the journal has taken it keeps and writes when it can, so nothing is
// taken back. It gives up when ctx ends, or when trying again is no use.
func (s *store) persist(ctx context.Context, do func() error) error {
	for tries := 0; ; tries++ {
		err := do()
		switch {
		case err == nil:
			if tries > 0 {
				s.failing.works()
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, journal.ErrClosed), errors.Is(err, journal.ErrTooLarge):
			return err
		}
		full := errors.Is(err, journal.ErrFull)
		s.fail(err, full)
		if full {
			err = s.awaitSpace(ctx)
		} else {
			err = await.Pause(ctx, retryPause)
		}
		if err != nil {
			return err
		}
	}
}

// fail notes that the journal takes nothing, so that senders wait, and tells it if it is time.
func (s *store) fail(err error, full bool) {
	if full {
		select {
		case s.short <- struct{}{}:
		default:
		}
		if f, tell := s.failing.fail(err, spacePause); tell {
			code, text, held := codes.JournalFull, "journal full", (*heldError)(nil)
			if errors.As(err, &held) {
				code, text = codes.OutputTooFar, "output too far behind"
			}
			s.reporter.failure(code, text, f, append([]any{"holds_up", "all senders"}, s.holder()...)...)
		}
		return
	}
	if f, tell := s.failing.fail(err, retryPause); tell {
		s.reporter.failure(codes.JournalBroken, "journal broken", f, "holds_up", "all senders")
	}
}

// awaitSpace returns when the journal may have room, or something may be done
// for it to have some.
func (s *store) awaitSpace(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, spacePause)
	defer cancel()
	select {
	case <-s.journal.Space():
	case <-wait.Done():
	}
	return ctx.Err()
}

// spacePause is how often a full journal is asked again, unasked.
const spacePause = time.Second

// retryPause is how long a failed write waits for the disk to recover.
const retryPause = 200 * time.Millisecond

// singleEventSenders finds the senders that wait for an ack after every event, which is
// slow when each ack is a sync, and names each of them once.
type singleEventSenders struct {
	mu    sync.Mutex
	peers map[string]int // groups of one acked event so far
}

const (
	maxSingleEventSenders = 1024
	manySingleEvents      = 1000
)

func (s *singleEventSenders) observe(chunks []*forward.Chunk, peer, input string, r *reporter) {
	if len(chunks) != 1 || chunks[0].ID == nil || chunks[0].Events != 1 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.peers[peer]
	if !known && len(s.peers) >= maxSingleEventSenders {
		return
	}
	if s.peers == nil {
		s.peers = make(map[string]int)
	}
	if n > manySingleEvents {
		return
	}
	s.peers[peer] = n + 1
	if n+1 == manySingleEvents {
		codes.SinglesSynced.Warn(r.log, "a sender waits for an ack after every event; each costs a disk sync: send several in one chunk, keep several in flight, or serve with --ack journaled", "peer", peer, "input", input)
	}
}

// heldError says that senders wait for an output that is too far behind.
type heldError struct{ output, limit string }

func (e *heldError) Error() string {
	return fmt.Sprintf("%s is more than %s behind", e.output, e.limit)
}

// Unwrap makes it a full journal, which is what senders wait for.
func (e *heldError) Unwrap() error { return journal.ErrFull }
