// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// Run serves until ctx is done, then drains: it stops accepting, finishes what
// is half done, sends the acks, hands on what the journal holds, for at most
// Config.Drain. What is left stays in the journal; that is no error.
//
//	        ctx ends          acks are out        outputs caught up
//	inputs ────┼── Run returns ──┤
//	pumps  ────┼─────────────────┼── drain ─────────────┤
//	repeats ───┼─────────────────┼──────────────────────┼─ save ─┤ journal closed
//	positions ─┴─────────────────┴──────────────────────┴────────┘
//
// A cause of ctx that wraps syscall.EPIPE says that nobody reads Config.Stdout any more: then
// stdout: is not waited for.
//
// An input or output that does not return is left behind, and so is an Apply. The error names it.
func (c *Collector) Run(ctx context.Context) error {
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	inputs, endInputs := context.WithCancel(context.Background())
	hard, stopHard := context.WithCancel(context.Background())
	drain, beginDrain := context.WithCancel(context.Background())
	defer endInputs()
	defer stopHard()
	defer beginDrain()

	var others, counting, tables sync.WaitGroup
	others.Go(func() { c.reporter.run(background) })
	others.Go(func() {
		c.repeats.run(background, c.journal, func(err error) {
			c.reporter.report(codes.RepeatsError, "repeats",
				err)
		})
	})
	others.Go(func() { c.backlogs.run(background) })
	others.Go(func() { c.backlogs.hold(background, c.makeRoom) })
	counting.Go(func() {
		c.startBacklog.run(background, c.journal,
			func(err error) { c.reporter.report(codes.JournalError, "journal", err) })
	})
	others.Go(func() { c.positions.run(background) })
	tables.Go(func() { watchTables(background, &c.routes, c.reporter) })

	c.start(ctx, &runs{inputs: inputs, hard: hard, drain: drain})
	var serving sync.WaitGroup
	serving.Go(func() { c.serve(inputs) })

	deadline, cancel := context.WithCancel(context.Background())
	defer cancel()
	limit := func() { time.AfterFunc(c.config.Drain, cancel) }
	err := c.crew.await(ctx, c.allOver)
	if err == nil && ctx.Err() == nil { // nothing more will come, and it may take any time until an end is asked for
		defer context.AfterFunc(ctx, limit)()
	} else {
		limit()
	}
	c.endCrew() // from now on ends neither come nor go
	endInputs()
	err = errors.Join(err, c.drainInputs(deadline, &serving))

	// What asked for no ack may not be durable yet, and outputs do not see it before.
	if syncErr := c.journal.Sync(deadline, c.journal.Stats().Last); syncErr != nil {
		codes.SyncUnknown.Warn(c.config.Log, "the last events are not known to be stored", "error", syncErr)
	}
	beginDrain()
	pumps := c.backlogs.active()
	defer context.AfterFunc(ctx, func() { // it has ended, or may do so while outputs catch up
		for _, p := range pumps {
			if p.plan.place == "stdout:" && errors.Is(context.Cause(ctx), syscall.EPIPE) {
				p.halt()
			}
		}
	})()
	if !pumpsEnded(deadline, pumps) {
		var behind []string
		for _, p := range pumps {
			if c.backlogs.of(p).events > 0 {
				behind = append(behind, p.name)
			}
		}
		codes.DrainUnfinished.Warn(c.config.Log, "not everything was handed on in time; the journal keeps it", "after",
			c.config.Drain, "behind", strings.Join(behind, " "))
		stopHard()
		// An output that hangs in the kernel cannot be interrupted. It has its
		// own goroutine, and nothing below touches what it holds.
		grace, cancelGrace := context.WithTimeout(context.Background(), time.Second)
		defer cancelGrace()
		if !pumpsEnded(grace, pumps) {
			stopBackground()
			soon, cancelSoon := context.WithTimeout(context.Background(), time.Second)
			defer cancelSoon()
			finished(soon, &counting)
			finished(soon, &others)
			c.mu.Lock()
			c.rememberLocked()
			c.mu.Unlock()
			return errors.Join(err, hanging(pumps))
		}
	}
	err = errors.Join(err, hanging(pumps))
	// Without the whole count of what the journal held the account does not add up.
	finished(deadline, &counting)
	stopBackground()
	counting.Wait()
	others.Wait()
	soon, cancelSoon := context.WithTimeout(context.Background(), time.Second)
	defer cancelSoon()
	finished(soon, &c.crew.leaving)
	finished(soon, &tables) // their file system may hang
	return errors.Join(err, c.Close())
}

// start lets all ends run that there are. Records on which the process before may have ended are
// tried first, one output after another, and before anything else may end the process.
func (c *Collector) start(ctx context.Context, r *runs) {
	c.crew.applying.Lock()
	defer c.crew.applying.Unlock()
	c.inHand.runs()
	for _, p := range c.backlogs.active() {
		if p.follower.NeedsTrial() {
			codes.RecordSuspect.Warn(c.config.Log,
				"the process has ended while one record was in hand: it is tried before anything else", "output",
				p.name)
			p.follower.Try(ctx)
		}
	}
	c.crew.runs = r
	for _, p := range c.backlogs.active() {
		c.startPump(p)
	}
	for _, in := range c.inputs { // in their order, which the goroutines would not keep
		in.tell()
	}
	for _, in := range c.inputs {
		c.startInput(in)
	}
}

// allOver says whether all inputs have ended by themselves.
func (c *Collector) allOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range c.inputs {
		if !in.over.Load() {
			return false
		}
	}
	return true
}

// errInputHangs says that an input is left behind.
var errInputHangs = codes.InputHangs.Errorf("the input does not return; it is left behind, and what it had not stored is not stored")

// errHangs says that an output is left behind.
var errHangs = codes.OutputHangs.Errorf("the output does not return from a write; the journal keeps what it had not confirmed")

// hanging names the outputs that have not ended.
func hanging(pumps []*pump) (err error) {
	for _, p := range pumps {
		if p.hangs.Load() {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.name, errHangs))
		}
	}
	return err
}

// serve shuts the server of Forward inputs down when ctx ends.
func (c *Collector) serve(ctx context.Context) {
	<-ctx.Done()
	if err := c.server.Shutdown(c.store.taking); err != nil {
		codes.ConnectionsCut.Warn(c.config.Log,
			"some connections were cut before their chunks were stored; their senders have no ack", "error", err)
		c.server.Close()
	}
}

// drainInputs waits for inputs that were told to end. After the deadline their sinks take nothing,
// and soon after that those that have not returned are left behind.
func (c *Collector) drainInputs(deadline context.Context, serving *sync.WaitGroup) error {
	var errs []error
	c.mu.Lock()
	inputs := append(c.inputs[:len(c.inputs):len(c.inputs)], c.crew.leavers...)
	c.mu.Unlock()
	all := func(ctx context.Context) bool {
		for _, in := range inputs {
			if !in.hasEnded(ctx) {
				return false
			}
		}
		return finished(ctx, serving)
	}
	if !all(deadline) {
		c.stopTaking()
		grace, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if !all(grace) {
			for _, in := range inputs {
				if in.running.Load() {
					errs = append(errs, fmt.Errorf("%s: %w", in.account.name, errInputHangs))
				}
			}
			if errs == nil {
				errs = append(errs, errors.New("a connection does not end; it is left behind"))
			}
		}
	}
	for _, in := range inputs {
		errs = append(errs, in.close())
	}
	return errors.Join(append(errs, c.crew.failures()...)...)
}

// finished waits for wg, but not longer than ctx.
func finished(ctx context.Context, wg *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
