// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// opened is the output as it was opened last.
type opened struct {
	out     output.Output
	gen     int // of out; that of the inbox
	resumer bool
	at      output.Placed // out, if it is one
	longer  output.Longer // likewise
	whole   bool          // out gets no pieces: its token is the position
	broken  error         // why out is of no more use, or why there is none
	reopens int           // since the last commit
	token   [tokenLen + 4]byte
}

// tokenLen is the length of a token: the position behind the record, its high byte first. That of a
// piece has its number behind it.
const tokenLen = 8

// tokenOf is the token of a flight, until the next call.
func (o *opened) tokenOf(x *flight) []byte {
	b := binary.BigEndian.AppendUint64(o.token[:0], uint64(x.end))
	if x.part || x.number > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(x.number))
	}
	return b
}

// errNotOpen stands for an output that was not opened yet.
var errNotOpen = errors.New("not open")

// Open opens the output, so that a mistake shows before Run. Run does it otherwise.
func (f *Follower) Open(ctx context.Context) error {
	s := &f.step
	s.gen = f.inbox.open()
	out, err := f.cfg.Open()
	if err != nil {
		return err
	}
	if err = f.resume(ctx, out); err == nil {
		s.out, s.broken = out, nil
		_, s.resumer = out.(output.Resumer)
		s.at, _ = out.(output.Placed)
		s.longer, _ = out.(output.Longer)
		_, s.whole = out.(output.Transactional)
		return nil
	}
	f.inbox.close()
	closing, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	return errors.Join(err, out.Close(closing))
}

// resume goes on where an output stands.
func (f *Follower) resume(ctx context.Context, out output.Output) error {
	switch o := out.(type) {
	case output.Resumer:
		var states [][]byte
		if _, state := f.cfg.Reader.Committed(); len(state) > 0 {
			states = append(states, state)
		}
		gen := f.step.gen
		return o.Resume(func(state []byte) error { return f.save(gen, state) }, states...)
	case output.Transactional:
		return f.restore(ctx, o)
	}
	return nil
}

// save makes an output's state durable without moving the cursor. The output calls it from a
// goroutine of its own. One that was given up has nothing to say any more.
func (f *Follower) save(gen int, state []byte) error {
	if !f.inbox.counts(gen) {
		return output.ErrClosed
	}
	p, _ := f.cfg.Reader.Committed()
	return f.cfg.Reader.Commit(p, state)
}

// restore goes to where a Transactional output stands. What lies between the cursor and its token
// is done. It is read to be counted, and to see that the token is this journal's.
func (f *Follower) restore(ctx context.Context, o output.Transactional) error {
	s := &f.step
	gen := s.gen
	token, ok, err := o.Restore(ctx, func(ctx context.Context, token []byte, c *forward.Chunk, rejected []output.Rejected) error {
		return f.refuseAt(ctx, gen, token, c, rejected)
	})
	if err != nil || !ok {
		return err
	}
	p, err := positionOf(token)
	if err != nil {
		return err
	}
	if p < s.committed {
		f.cfg.Report(fmt.Errorf("the output stands at %v, before the cursor's %v: what lies between is not repeated", p, s.committed))
		return nil
	}
	var c forward.Chunk
	var n Counts
	at := s.committed
	for at < p && ctx.Err() == nil {
		rec, ok, err := f.cfg.Reader.TryNext()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("the output stands at %v, and this journal ends at %v: the data directory is an older copy, or has lost its end", p, at)
		}
		if rec.Pos > p {
			return fmt.Errorf("the output stands at %v, where no record of this journal ends", p)
		}
		at = rec.Pos
		n.Chunks++
		if err := c.Parse(rec.Data); err != nil {
			n.Broken++
		} else {
			n.Out += int64(c.Events)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.rewind(p)
	s.passing = n
	return nil
}

// positionOf is what the token of a whole record says.
func positionOf(token []byte) (journal.Position, error) {
	if len(token) != tokenLen {
		return 0, fmt.Errorf("a token of %d bytes is none of a follower's", len(token))
	}
	return journal.Position(binary.BigEndian.Uint64(token)), nil
}

// reopen closes the output and opens another one where the cursor stands.
func (f *Follower) reopen(ctx, drain context.Context) {
	s := &f.step
	if why := s.broken; !errors.Is(why, errNotOpen) {
		f.giveUp(ctx)
		wait := min(retryPause<<min(s.reopens, 10), reopenMost)
		s.reopens++
		f.fail(why, wait)
		if f.pauseReopen(ctx, drain, wait) != nil {
			return
		}
	}
	if s.broken = f.cfg.Reader.SkipTo(s.committed); s.broken == nil {
		s.broken = f.Open(ctx)
	}
}

// pauseReopen waits before the output is opened again. What waits too long meanwhile is given up.
func (f *Follower) pauseReopen(ctx, drain context.Context, d time.Duration) error {
	if f.cfg.Behind == nil {
		return pause(ctx, d)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := pause(ctx, min(lookEvery, time.Until(end))); err != nil {
			return err
		}
		if f.over(drain) != nil {
			f.giveUpOldest(ctx)
		}
	}
	return nil
}

// giveUp closes the output, if there is one, and forgets what it had.
func (f *Follower) giveUp(ctx context.Context) {
	s := &f.step
	if s.out == nil {
		return
	}
	closing, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	if err := s.out.Close(closing); err != nil {
		f.cfg.Report(err)
	}
	f.collect()
	// What an output without a state has done, it has done; with one, it counts when it is flushed.
	if !s.resumer && s.stop > s.committed {
		_ = f.commit(ctx) // it fails only when ctx ends
	}
	f.forget()
}

// forget drops what is beyond the cursor.
func (f *Follower) forget() {
	s := &f.step
	s.out, s.at, s.longer, s.cutting, s.parted = nil, nil, nil, false, false
	for _, x := range f.inbox.close() {
		x.done = true
	}
	for s.window.len() > 0 {
		if x := s.pop(); x.done {
			f.recycle(x)
		} // else an output that was left behind may still read it: landed lets go of it
	}
	s.inFlight = 0
	clear(s.letters)
	s.due = due{letters: s.letters[:0]}
	f.endSplit()
	s.rewind(s.committed)
	f.moved.Store(0)
}

// rewind says that all is done up to a position, and nothing is known of what comes after it.
func (p *place) rewind(to journal.Position) {
	p.taken, p.finished, p.stop = to, to, to
	p.state, p.keep = nil, true
}
