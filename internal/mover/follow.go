// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// mostFailures is how often in a row an adopted spill may fail to be read.
const mostFailures = 10

// reading is how a spill comes back. A follower reads it and moves its cursor; what it submits is
// shipped by the mover when the spill's turn has come. It runs until it has read all that was there
// when it began, and all it read is done; then another one, if there is more.
//
//	journal ──► follower ── SubmitAt ──► ahead ──► ship ──► the destination
//	   cursor ◄─────┴─────────── back ◄─────────────────── landing
type reading struct {
	ahead   []*flight // submitted by the follower, to be shipped
	running bool      // there is a follower
	broken  bool      // reading has failed for good: what is left stays for the next process
	leave   func()    // ends the follower; nil: there was none
	ended   chan struct{}
}

// stop ends the follower, if there is one, and waits for that. It is for the disk's goroutine.
func (r *reading) stop() {
	if r.leave != nil {
		r.leave()
		<-r.ended
	}
}

// ship submits the next chunk, or sees to it that there will be one.
func (sp *spill) ship(m *Mover) bool {
	if len(sp.ahead) == 0 {
		if !sp.running && !sp.broken && sp.entries.len() > 0 {
			sp.follow(m)
		}
		return false
	}
	f := sp.ahead[0]
	sp.lose(m, f.pos-1)
	if sp.entries.len() == 0 {
		return false // it was read before the disk's goroutine has told that it is written
	}
	sp.ahead = sp.ahead[1:]
	e := sp.entries.front()
	if e.pos > f.pos {
		m.report(fmt.Errorf("%s at %v: it could not be read when the spill was opened, and is left out", sp.dir, f.pos))
		f.back(output.Result{})
		return true
	}
	sp.entries.pop()
	f.bytes, f.win = e.bytes, e.win
	m.submit(f)
	return true
}

// lose accounts for the entries up to a position, which cannot be read.
func (sp *spill) lose(m *Mover, to journal.Position) {
	for sp.entries.len() > 0 && sp.entries.front().pos <= to {
		e := sp.entries.front()
		sp.entries.pop()
		sp.left--
		m.count.cut.sub(uint64(e.events), e.bytes)
		m.drop(Lost, uint64(e.events))
		if e.win != nil {
			m.answerDropped(e.win, e.win.first, e.win.last)
		}
	}
}

// follow has all entries read and submitted.
func (sp *spill) follow(m *Mover) {
	to := sp.entries.at(sp.entries.len() - 1).pos
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan struct{})
	sp.running, sp.leave, sp.ended = true, leave, ended
	m.disk.do("reading "+sp.dir, func() {
		f, err := sp.follower(m, to)
		if err != nil {
			close(ended)
			return // the journal is closed
		}
		go func() {
			defer close(ended)
			caughtUp, now := context.WithCancel(ctx)
			now()
			err := f.Run(ctx, caughtUp)
			m.post(func() {
				m.report(err)
				sp.running = false
				if ctx.Err() == nil {
					sp.lose(m, to) // they are durable and were not read: they are gone
				}
			})
		}()
	})
}

// follower returns one that begins at the cursor. It reads only what is durable. That soon would be
// by itself, but the destination waits.
func (sp *spill) follower(m *Mover, to journal.Position) (*follow.Follower, error) {
	if err := m.insist(func() error { return sp.j.Sync(context.Background(), to) }); err != nil {
		return nil, err
	}
	sp.mu.Lock()
	defer sp.mu.Unlock()
	_ = sp.rd.Close() // it was only read
	rd, err := sp.j.Reader(cursor)
	if err != nil {
		return nil, err
	}
	sp.rd = rd
	t := &turn{m: m, sp: sp}
	return follow.New(&follow.Config{
		Reader: rd,
		Open:   func() (output.Output, error) { return t, nil },
		Opaque: true,
		Chunks: 2 * mostFlying,
		Bytes:  2 * m.flight,
		Commit: t.commit,
		Failed: t.failed,
		Report: func(err error) { m.report(fmt.Errorf("%s: %w", sp.dir, err)) },
	}), nil
}

// A turn is the output of a spill's follower: chunks wait in it for the spill's turn. The mover has
// the destination, which outlives it.
type turn struct {
	m        *Mover
	sp       *spill
	failures int // in a row
}

// Restore leaves it to the cursor where to begin.
func (t *turn) Restore(context.Context) (token []byte, ok bool, err error) { return nil, false, nil }

// SubmitAt queues a chunk. Its token is its position.
func (t *turn) SubmitAt(token []byte, c *forward.Chunk, done func(output.Result)) {
	t.failures = 0
	f := &flight{m: t.m, slot: -1, chunk: *c, from: t.sp, back: done}
	f.pos = journal.Position(binary.BigEndian.Uint64(token))
	f.landed = f.land
	t.m.post(func() { t.sp.ahead = append(t.sp.ahead, f) })
}

// Submit is not called: chunks come with tokens.
func (t *turn) Submit(_ *forward.Chunk, done func(output.Result)) {
	done(output.Result{Err: output.ErrClosed})
}

func (t *turn) Flush(context.Context) error { return nil }

// Close leaves what is pending to the mover. Nothing of it is done any more for the follower.
func (t *turn) Close(context.Context) error { return nil }

// commit moves the cursor. That it cannot be moved is no reason to deliver nothing.
func (t *turn) commit(p journal.Position) error {
	if err := t.sp.commit(p, nil); err != nil {
		t.m.report(fmt.Errorf("%s: %w", t.sp.dir, err))
	}
	if t.sp.own {
		t.m.post(func() { t.m.count.disk.Store(t.sp.j.Stats().Bytes) })
	}
	return nil
}

// failed counts failures to read. The own spill, which nobody else can read now, is tried again for
// ever.
func (t *turn) failed(err error, _ time.Duration) {
	if t.failures++; t.failures > mostFailures {
		t.failures = 0
		t.m.report(fmt.Errorf("reading %s: %w", t.sp.dir, err))
		t.m.post(func() { t.sp.broken = !t.sp.own })
	}
}
