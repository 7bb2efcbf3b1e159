// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A crew is the goroutines of the ends of a collector. Each end has one, which Run or Apply starts
// and which ends alone:
//
//	              Apply removes it            time is up
//	input    runs ──────┼── no longer accepts, acks what it has ──┼─ cut ─┤ its account stays
//	output   runs ──────┼── delivers what was stored until then ──┼─ cut ─┤ parked: its cursor stays
//
// Which ends there are stands in Collector.inputs and Collector.pumps, which are guarded by
// Collector.mu. The holder of applying changes them; it alone adds something, and nothing else but
// a removed end that has ended takes something out. Code that only looks at pumps has the copy of
// backlogs.
type crew struct {
	applying sync.Mutex // an Apply, the start or the end of Run: one at a time; before Collector.mu

	runs    *runs           // nil before Run; guarded by applying
	over    bool            // Run ends; guarded by Collector.mu
	opened  uint64          // inputs; guarded by applying
	hurry   context.Context // ends when Run does: no input or output is waited for any more
	hasten  context.CancelFunc
	leaving sync.WaitGroup // waiting for removed ends
	leavers []*intake      // inputs that were removed and have not ended; guarded by Collector.mu

	failed chan error
	ended  chan struct{} // gets something when an input has ended by itself; holds one
}

// runs are what ends the ends of a collector that runs.
type runs struct{ inputs, hard, drain context.Context }

func (w *crew) begin() {
	w.hurry, w.hasten = context.WithCancel(context.Background())
	w.failed, w.ended = make(chan error, 64), make(chan struct{}, 1)
}

// await returns when ctx has ended, when an input has failed, or when all are over.
func (w *crew) await(ctx context.Context, over func() bool) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.failed:
			return err
		case <-w.ended:
			if !over() {
				continue
			}
			select {
			case err := <-w.failed:
				return err
			default:
				return nil
			}
		}
	}
}

// idle waits until nothing is applied, but not longer than ctx.
func (w *crew) idle(ctx context.Context) bool {
	got := make(chan struct{})
	go func() {
		w.applying.Lock()
		defer w.applying.Unlock()
		close(got)
	}()
	return closed(ctx, got)
}

// endCrew says that ends neither come nor go any more. What is applied just now gets a moment to be
// done, or to be taken back; a disk that hangs may hold it for longer, and it commits nothing then.
func (c *Collector) endCrew() {
	c.crew.hasten()
	wait, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	c.crew.idle(wait)
	c.mu.Lock()
	c.crew.over = true
	c.mu.Unlock()
}

// leave ends what was removed: beside all else, or at once if nothing runs yet, for then there is
// nothing to wait for, and Run is to find it gone.
func (w *crew) leave(end func()) {
	if w.runs == nil {
		end()
		return
	}
	w.leaving.Go(end)
}

// fail notes that an input has failed.
func (w *crew) fail(err error) {
	select {
	case w.failed <- err:
	default: // Run ends already
	}
}

func (w *crew) failures() (errs []error) {
	for {
		select {
		case err := <-w.failed:
			errs = append(errs, err)
		default:
			return errs
		}
	}
}

// startInput runs an input, if the collector runs.
func (c *Collector) startInput(in *intake) {
	r := c.crew.runs
	if r == nil {
		return
	}
	ctx, stop := context.WithCancel(r.inputs)
	in.stop, in.ended = stop, make(chan struct{})
	in.running.Store(true)
	go func() {
		defer close(in.ended)
		in.run(ctx, func(err error) {
			if in.leaves.Load() {
				c.reporter.report(codes.InputError, "input", err)
				return
			}
			c.crew.fail(err)
		})
		select {
		case c.crew.ended <- struct{}{}:
		default:
		}
	}()
}

// tell says where an input listens.
func (in *intake) tell() {
	if l, ok := in.Input.(interface{ announce() }); ok {
		l.announce()
	}
}

// hasEnded waits for an input, but not longer than ctx.
func (in *intake) hasEnded(ctx context.Context) bool { return closed(ctx, in.ended) }

// closed waits until a channel is closed, or is none, but not longer than ctx.
func closed(ctx context.Context, ch <-chan struct{}) bool {
	if ch == nil {
		return true
	}
	select {
	case <-ch:
		return true
	default:
	}
	select {
	case <-ch:
		return true
	case <-ctx.Done():
		return false
	}
}

// endGrace is how long an end has after its time was up: more than an output takes to close, on a
// slow disk as well.
const endGrace = 5 * time.Second

// endInput has an input take no more, and waits for it. It reports false if that does not return.
func (c *Collector) endInput(in *intake, patience time.Duration) bool {
	if in.ended != nil {
		in.stop()
		wait, cancel := context.WithTimeout(c.crew.hurry, patience)
		defer cancel()
		if !in.hasEnded(wait) && c.crew.hurry.Err() == nil {
			in.mute()
			grace, cancel := context.WithTimeout(c.crew.hurry, endGrace)
			defer cancel()
			in.hasEnded(grace)
		}
		if in.running.Load() {
			return false
		}
	}
	if err := in.close(); err != nil {
		c.reporter.report(codes.InputError, "input", err)
	}
	return true
}

// leaveInput ends an input that was removed, with its connections, and adds what it has counted to
// its account.
func (c *Collector) leaveInput(in *intake, patience time.Duration) {
	until, cancel := context.WithTimeout(context.Background(), patience) // Run has its own way to end connections
	defer cancel()
	if !c.endInput(in, patience) {
		if c.crew.hurry.Err() == nil {
			c.reporter.report(codes.InputHangs, "input", fmt.Errorf("%s: %w", in.account.name, errInputHangs))
		}
		if !in.hasEnded(c.crew.hurry) {
			return
		}
		_ = in.close()
	}
	if in.endpoint != nil && c.server.ShutdownEndpoint(until, in.endpoint) != nil && c.crew.hurry.Err() == nil {
		codes.ConnectionsCut.Warn(c.config.Log,
			"some connections of a removed input were cut before their chunks were stored; their senders have no ack",
			"input", in.account.name)
	}
	if c.retire(in) {
		codes.InputRemoved.Info(c.config.Log, "input removed", "input", in.account.name)
	}
}

// retire adds what an input has counted to its account, unless nothing is counted any more.
func (c *Collector) retire(in *intake) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		return false
	}
	a := in.account
	if in.endpoint != nil {
		now := c.server.Retire(in.endpoint)
		a.pastServer.Add(&now)
		b := *c.store.books.Load()
		b.doors = withoutDoor(b.doors, in.endpoint)
		c.store.books.Store(&b)
	} else {
		now := in.Stats()
		now.Connections = 0
		a.past.add(&now)
	}
	c.crew.leavers = slices.DeleteFunc(slices.Clone(c.crew.leavers), func(other *intake) bool { return other == in })
	return true
}

// startPump runs an output, if the collector runs.
func (c *Collector) startPump(p *pump) {
	r := c.crew.runs
	if r == nil {
		return
	}
	var hard, drain context.Context
	hard, p.halt = context.WithCancel(r.hard)
	drain, p.finish = context.WithCancel(r.drain)
	p.ended = make(chan struct{})
	p.hangs.Store(true) // until it has ended
	go func() {
		defer close(p.ended)
		err := p.follower.Run(hard, drain)
		if err != nil {
			p.report(err)
		}
		p.hangs.Store(errors.Is(err, output.ErrLeft))
		if p.recent != nil {
			p.recent.leave()
		}
	}()
}

// hasEnded says whether the output ran, and does no more.
func (p *pump) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default: // also where it was not started
		return false
	}
}

// pumpsEnded waits for pumps, but not longer than ctx.
func pumpsEnded(ctx context.Context, pumps []*pump) bool {
	for _, p := range pumps {
		if !closed(ctx, p.ended) {
			return false
		}
	}
	return true
}

// failsEvery is how often it is looked whether what an output has can be waited for.
const failsEvery = 20 * time.Millisecond

// endPump ends an output that takes no more than Follower.Until allows: it finishes what it has for
// some time, then it is cut. An impatient caller does not wait for one that fails. It reports false
// if the output does not return.
func (c *Collector) endPump(p *pump, patience time.Duration, impatient bool) bool {
	if p.ended == nil {
		if err := p.letGo(); err != nil {
			p.report(err)
		}
		return true
	}
	p.finish()
	wait, cancel := context.WithTimeout(c.crew.hurry, patience)
	defer cancel()
	ended := false
	for !ended && wait.Err() == nil && (!impatient || p.failure() == nil) {
		step, cancel := context.WithTimeout(wait, failsEvery)
		ended = closed(step, p.ended)
		cancel()
	}
	if !ended && c.crew.hurry.Err() != nil && !impatient { // Run does the rest
		return false
	}
	p.halt()
	grace, cancelGrace := context.WithTimeout(context.Background(), endGrace)
	defer cancelGrace()
	return closed(grace, p.ended)
}

// leaveOutput ends an output that was removed. Its place in the journal stays.
func (c *Collector) leaveOutput(p *pump, patience time.Duration) {
	if !c.endPump(p, patience, false) {
		if c.crew.hurry.Err() == nil {
			p.report(errHangs)
		}
		if !closed(c.crew.hurry, p.ended) {
			return
		}
	}
	c.park(p)
}

// park keeps what is known of an output that was removed and has ended, unless it is there again.
func (c *Collector) park(p *pump) {
	c.mu.Lock()
	if c.last != nil || c.pumps[p.index] != p {
		c.mu.Unlock()
		return
	}
	c.exchangeLocked(&pump{
		ledger: p.ledger, plan: p.plan, name: p.name, url: p.url, index: p.index, limit: p.limit,
		reporter: p.reporter,
	})
	c.store.delivered.leave(p.index, false)
	c.mu.Unlock()
	b := c.backlogs.of(p)
	codes.OutputRemoved.Info(c.config.Log, "output removed; its place in the journal is kept while there is room",
		"output", p.name,
		"behind", b.events, "behind_bytes", b.bytes, "behind_for", b.age.Round(time.Second))
}

// exchangeLocked puts a pump in the place of the one before, or of none.
func (c *Collector) exchangeLocked(p *pump) {
	c.pumps = slices.Clone(c.pumps)
	if p.index == len(c.pumps) {
		c.pumps = append(c.pumps, p)
	}
	if old := c.pumps[p.index]; old != p && old.follower != nil {
		events, chunks, bytes := old.follower.Sent()
		p.sent.events.Add(events)
		p.sent.chunks.Add(chunks)
		p.sent.bytes.Add(bytes)
	}
	c.pumps[p.index] = p
	c.publish()
}

// publish tells those that look at pumps which there are.
func (c *Collector) publish() {
	pumps := slices.Clone(c.pumps)
	c.backlogs.pumps.Store(&pumps)
	select {
	case c.backlogs.changed <- struct{}{}:
	default:
	}
}

// makeRoom gives up the places of removed outputs while they hold a journal that is full, those
// furthest behind first.
func (c *Collector) makeRoom() {
	if !c.crew.applying.TryLock() { // the next call tries again
		return
	}
	defer c.crew.applying.Unlock()
	for c.journal.Stats().Full && !c.startBacklog.counting() {
		p := c.furthestParked()
		if p == nil || !c.giveUpPlace(p) {
			return
		}
	}
}

// furthestParked is the output furthest behind of those that were removed and have ended, if
// nothing else needs the part of the journal that it holds: what runs, or what is known of repeats
// and inputs, which moves on by itself.
func (c *Collector) furthestParked() (furthest *pump) {
	known, _ := c.repeats.cursor.Committed()
	needed := min(c.journal.Synced(), known, c.positions.committed())
	passed := func(p *pump) journal.Position { return c.store.delivered.passed(p.index) }
	for _, p := range *c.backlogs.pumps.Load() {
		switch {
		case p.follower != nil:
			needed = min(needed, passed(p))
		case !p.gone.Load() && (furthest == nil || passed(p) < passed(furthest)):
			furthest = p
		}
	}
	if furthest == nil || passed(furthest)>>32 >= needed>>32 { // in the same segment
		return nil
	}
	return furthest
}

func (c *Collector) giveUpPlace(p *pump) bool {
	waiting := c.backlogs.of(p)
	if err := c.journal.RemoveCursor(p.plan.cursor); err != nil {
		c.reporter.report(codes.JournalError, "journal", err)
		return false
	}
	c.mu.Lock()
	if c.last != nil {
		c.mu.Unlock()
		return false
	}
	stored := c.store.storedOfAll()
	waiting.events = c.startBacklog.of(p.index) + stored - p.missed(stored) - p.done()
	p.loseLocked(waiting.events, stored)
	c.store.delivered.leave(p.index, true)
	c.mu.Unlock()
	codes.OutputPlaceLost.Warn(c.config.Log, "the journal is full: the place of a removed output is given up", "output",
		p.name,
		"events", waiting.events, "bytes", waiting.bytes, "waited", waiting.age.Round(time.Second))
	c.noteNames() // that it is gone is known
	return true
}
