// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/window"
)

// grace is how much longer than its context Close may take to put things away, each step of it.
const grace = 100 * time.Millisecond

// saveGrace is the same for writing to disk what would be lost with plain memory.
const saveGrace = 500 * time.Millisecond

// errUnread is why something is left though Close had the time to deliver it.
var errUnread = errors.New("mover: what dead processes left cannot be read now")

// A closer ends the life of a Mover, step by step as phase.go draws it.
type closer struct {
	*core
	loop   *loop
	states *states
	dead   *dead

	shut         chan struct{} // closed when all is done that could be; then err is set
	err          error
	leave        error        // why not all is delivered; the mover's goroutine's
	givenUpBytes atomic.Int64 // bytes of events that are given up
	whatLeft     error        // set when the mover's goroutine has ended
}

func newCloser(l *loop, states *states, dead *dead) *closer {
	return &closer{core: l.core, loop: l, states: states, dead: dead, shut: make(chan struct{})}
}

// close is Mover.Close.
func (c *closer) close(ctx context.Context) error {
	if c.closed.CompareAndSwap(false, true) {
		close(c.closing)
		c.err = c.doClose(ctx)
		close(c.shut)
	}
	select {
	case <-c.shut:
		return c.err
	default:
	}
	select {
	case <-c.shut:
		return c.err
	case <-ctx.Done():
		return fmt.Errorf("mover: close: %w", ctx.Err())
	}
}

func (c *closer) doClose(ctx context.Context) error {
	c.rings.seal()
	var errs []error
	err := c.mail.ask(ctx, func() { c.enter(sealed); c.loop.tell() })
	if err == nil {
		flushing, cancel := c.untilPour(ctx)
		err = c.loop.flush(flushing)
		if err == nil { // what dead processes had dropped may have become known, and been told, only meanwhile
			if err = c.mail.ask(flushing, c.loop.tell); err == nil {
				err = c.loop.flush(flushing)
			}
		}
		cancel()
	}
	late := ctx
	if err != nil {
		// The time is up, or nearly: what follows has a little of its own.
		asking, cancel := c.orGrace(ctx, grace)
		aerr := c.mail.ask(asking, func() { c.enter(stopped) })
		cancel()
		if aerr != nil {
			close(c.gaveUp)
			go c.endLater(err)
			return c.hung(err)
		}
		late, cancel = context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
	}
	if derr := c.closeDestination(late); derr != nil {
		errs = append(errs, derr)
	}
	if err != nil && c.canSave() {
		late, cancel := c.orGrace(ctx, saveGrace)
		c.save(late)
		cancel()
	}
	close(c.gaveUp)
	c.mail.post(func() {
		c.leave = err
		c.enter(leaving)
	})
	late, cancel := c.orGrace(ctx, grace)
	defer cancel()
	select {
	case <-c.ended:
	case <-late.Done():
		return c.hung(cmp.Or(err, late.Err()))
	}
	errs = append(errs, c.whatLeft)
	for _, d := range []*disk{&c.disk, &c.dead.work} {
		select {
		case <-d.rest():
		case <-late.Done():
			if serr := d.unfinished(); serr != nil {
				errs = append(errs, fmt.Errorf("mover: a goroutine was left behind: %w", serr))
			}
		}
	}
	return errors.Join(errs...)
}

// endLater lets go of everything once the mover's goroutine comes back: it may only have had no
// processor for too long, and while it has ring and spill no successor can take them over. The
// destination goes first, so that it does not deliver what they already have.
func (c *closer) endLater(err error) {
	_ = c.mail.ask(context.Background(), func() {})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.report(c.closeDestination(ctx))
	c.mail.post(func() { c.leave = err; c.enter(leaving) })
}

// hung is what Close returns when the mover's goroutine does not come back.
func (c *closer) hung(err error) error {
	return errors.Join(c.undelivered(c.left(), err),
		errors.New("mover: its goroutine did not answer, for the machine is busy or it hangs in a call of the destination, of Delivered or of Diagnostics, and was left behind"))
}

// orGrace is ctx, but gives it at least a little time.
func (c *closer) orGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Deadline(); ctx.Err() == nil && (!ok || time.Until(d) > grace) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), grace)
}

// canSave says that what is in plain memory can be saved on disk.
func (c *closer) canSave() bool { return c.cfg.Dir != "" && c.rings.cur.Load().Ring.Path() == "" }

// untilPour leaves time for that.
func (c *closer) untilPour(ctx context.Context) (context.Context, context.CancelFunc) {
	d, ok := ctx.Deadline()
	if !ok || !c.canSave() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, d.Add(-min(time.Until(d)/2, time.Second)))
}

// closeDestination has it give up what is pending.
func (c *closer) closeDestination(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- c.cfg.Destination.Close(ctx) }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	end := ctx.Done()
	for {
		select {
		case err := <-done:
			return err
		case <-end:
			timer.Reset(grace) // it should be about to return
			end = nil
		case <-timer.C:
			if end == nil {
				return errors.New("mover: the destination's Close hangs and was left behind")
			}
		}
	}
}

// save puts everything that is not delivered into the spill.
func (c *closer) save(ctx context.Context) {
	done := make(chan struct{})
	c.mail.post(func() { c.loop.spiller.save(c.mine(), done) })
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// mine takes the chunks of own rings, as they were cut, out of those that the destination gave up.
func (c *closer) mine() []*flight {
	delivery := c.loop.delivery
	all := delivery.givenUp
	delivery.givenUp = nil
	var mine []*flight
	for _, f := range all {
		if f.from == nil && f.feed.Own {
			f.flying = false
			mine = append(mine, f)
		} else {
			delivery.givenUp = append(delivery.givenUp, f)
		}
	}
	asCut(mine, *c.rings.all.Load()) // however the destination gave them up
	return mine
}

// run is the mover's goroutine.
func (c *closer) run() {
	defer c.end()
	c.loop.run()
}

// end lets go of everything the mover's goroutine has. It is the last that this does.
func (c *closer) end() {
	c.loop.spiller.lastLook() // which the disk's goroutine sees when it finds the mailbox closed
	c.mail.close()
	c.loop.delivery.close()
	c.loop.collect()
	c.loop.answer()
	c.states.close()
	c.loop.timer.Stop()
	window.LeaveRuns(marked(c.undone()))

	for _, sp := range c.loop.spills() {
		if sp.gone.Load() {
			sp.giveUp(0) // what was read of it, and is only in memory
		}
	}
	var errs []error
	where := slices.Clone(c.loop.spiller.saved)
	for _, s := range c.loop.legacy.adopted {
		where = append(where, s.Ring.Path())
		errs = append(errs, s.close(true))
	}
	c.rings.mu.Lock()
	for _, s := range *c.rings.all.Load() {
		s.failWaiters()
		path := s.Ring.Path()
		done := !s.Fill() && s.Out == 0
		switch {
		case done && path != "" && c.ownsState():
			errs = append(errs, s.close(true)) // the state in it is for what is left
		case done:
			errs = append(errs, s.close(false))
		case path != "":
			where = append(where, path)
			errs = append(errs, s.close(true))
		default:
			errs = append(errs, s.close(false))
			c.giveUp(s)
		}
	}
	c.rings.mu.Unlock()
	c.loop.spiller.relief.again()
	c.loop.note() // before they are closed, which may hang in a disk
	for _, sp := range c.loop.spills() {
		if sp.gone.Load() {
			continue
		}
		if sp.own && sp.empty() && c.loop.spiller.writing == 0 {
			c.count.disk.Add(-sp.Bytes())
			sp.remove()
			continue
		}
		where = append(where, sp.Dir)
		sp.leave()
	}
	where = append(where, c.loop.spiller.relief.leave()...)
	if c.loop.spiller.writing > 0 {
		c.disk.do("closing a spill", c.loop.spiller.shelf.close)
	}
	if left := c.undelivered(where, cmp.Or(c.leave, errUnread)); left.Events > 0 {
		errs = append(errs, left)
	}
	if c.dead.used.Load() {
		c.dead.work.do("closing the dead letters", c.dead.close)
	}
	c.whatLeft = errors.Join(errs...)
	close(c.ended)
}

// undelivered says what is not delivered and where that is, or else what is lost.
func (c *closer) undelivered(where []string, err error) *UndeliveredError {
	s := c.count.stats()
	left := &UndeliveredError{Events: s.Held, Bytes: s.HeldBytes, Where: where, Lost: s.Missed[GivenUp], Err: err}
	if left.Events == 0 {
		left.Events, left.Bytes, left.Where, left.Lost = left.Lost, c.givenUpBytes.Load(), nil, 0
	}
	return left
}

// ownsState says that the ring has a state that counts for what is left in a spill: its cursor has
// an older one, or none.
func (c *closer) ownsState() bool {
	return c.states.some() && slices.ContainsFunc(c.loop.spills(),
		func(sp *backlog) bool { return sp.entries.Len() > 0 })
}

// giveUp counts what is left in a ring of plain memory, and what was cut from it and is in no
// spill.
func (c *closer) giveUp(s *feed) {
	t := s.totals()
	n, b := t.events-s.Taken.Load(), t.bytes-s.Bytes.Load()
	s.Taken.Add(n)
	s.Bytes.Add(b)
	for _, f := range c.undone() {
		if f.feed == s && f.from == nil {
			n += uint64(f.Chunk.Events)
			b += f.Bytes
			c.count.inHand.sub(uint64(f.Chunk.Events), f.Bytes)
		}
	}
	c.count.missed[GivenUp].Add(n)
	c.givenUpBytes.Add(int64(b))
}

// undone are the chunks in memory that neither destination nor disk takes any more.
func (c *closer) undone() []*flight {
	return slices.Concat(c.loop.delivery.givenUp, c.loop.spiller.unsaved, c.loop.spiller.stuck)
}

// left is where things are, when the mover's goroutine cannot be asked.
func (c *closer) left() []string {
	var where []string
	if path := c.rings.path; path != "" {
		where = append(where, path)
		if c.cfg.Dir != "" {
			where = append(where, filepath.Join(c.cfg.Dir, filepath.Base(path)))
		}
	}
	return where
}
