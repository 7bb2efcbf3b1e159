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
	"github.com/spillwaylog/spillway/journal"
)

// An opening is an output that is to be opened.
type opening struct {
	plan   *plannedOutput
	was    *pump   // whose place it takes, though that may be removed already; nil: it has none
	adopts string  // the cursor of was, if that is not its own
	after  []*pump // those that have to end before, was among them
	isNew  bool    // it begins where the journal ends
	index  int
	pump   *pump // once it is open
}

func (o *opening) tell(c *Collector) {
	args := []any{"output", o.pump.name}
	if o.pump.name != o.pump.url {
		args = append(args, "url", o.pump.url)
	}
	switch {
	case o.isNew:
		codes.OutputAdded.Info(c.config.Log, "output added; it gets what comes from now on", args...)
	case len(o.after) > 0:
		codes.OutputChanged.Info(c.config.Log, "output changed; it goes on where it stood", args...)
	default:
		codes.OutputBack.Info(c.config.Log, "output added; it goes on where it was removed", args...)
	}
}

// compare says what is new, gone or changed.
func (g *change) compare(inputs []inputPlan, outputs []plannedOutput) {
	g.compareInputs(inputs)
	pumps := *g.c.backlogs.pumps.Load() // one that leaves may end meanwhile
	byCursor := map[string]*pump{}
	for _, p := range pumps {
		byCursor[p.plan.cursor] = p
	}
	wanted := map[string]bool{}
	for i := range outputs {
		wanted[outputs[i].cursor] = true
	}
	index := len(pumps)
	for i := range outputs {
		o := &opening{plan: &outputs[i]}
		o.was = byCursor[o.plan.cursor]
		if q := byCursor[o.plan.unnamed]; o.was == nil && q != nil && !wanted[o.plan.unnamed] && !q.gone.Load() {
			o.was, o.adopts = q, o.plan.unnamed
			wanted[o.adopts] = true // by one
		}
		if p := o.was; p != nil && p.follower != nil && !p.leaves.Load() && !p.hasEnded() && o.adopts == "" &&
			p.plan.end.URL == o.plan.end.URL &&
			p.plan.sifter.Same(o.plan.sifter) {
			continue
		}
		o.isNew = o.was == nil || o.was.gone.Load()
		if o.was != nil {
			o.index = o.was.index
		} else {
			o.index = index
			index++
		}
		g.openings = append(g.openings, o)
	}
	for _, p := range pumps {
		if p.follower != nil && !p.leaves.Load() && !wanted[p.plan.cursor] {
			g.leaves = append(g.leaves, p)
		}
	}
	ends := func(p *pump) bool {
		return slices.Contains(g.leaves, p) || p.leaves.Load() ||
			slices.ContainsFunc(g.openings, func(o *opening) bool { return o.was == p })
	}
	for _, o := range g.openings {
		if o.was != nil && o.was.follower != nil {
			o.after = append(o.after, o.was)
		}
		for _, p := range pumps { // two never write one file
			if p.follower != nil && ends(p) && p != o.was && o.plan.file &&
				o.plan.conflict(&o.plan.end, p.plan) != nil {
				o.after = append(o.after, p)
			}
		}
	}
}

// syncFor is the least that a change waits for the journal to be synced: a disk may be slow.
const syncFor = 30 * time.Second

// openOutputs fixes the place in the journal at which outputs come and go, and opens those that no
// other one has to end for.
func (g *change) openOutputs(ctx context.Context) error {
	if len(g.openings)+len(g.leaves) == 0 {
		return nil
	}
	c := g.c
	for _, o := range g.openings {
		if o.isNew { // what comes from here on stays until it is known where the output begins
			g.undo = append(g.undo, func() { g.unplace(o) }) // first: it may be there after an error, too
			if err := g.place(o, c.journal.Synced()); err != nil {
				return err
			}
		}
	}
	until := func(at journal.Position) {
		for _, p := range g.leaves {
			p.follower.Until(at)
		}
	}
	g.undo = append(g.undo, func() { until(0) })
	until(1) // they pause, so that none passes the place while it is looked for
	c.store.gate.Lock()
	at := c.journal.Stats().Last
	g.stored = c.store.storedOfAll()
	c.store.gate.Unlock()
	until(at)
	wait, cancel := context.WithTimeout(ctx, max(g.next.RemovedDrain, syncFor))
	defer cancel()
	if err := c.journal.Sync(wait, at); err != nil {
		return fmt.Errorf("the journal cannot be synced: %w", err)
	}
	for _, o := range g.openings {
		if o.isNew {
			if err := g.place(o, at); err != nil {
				return err
			}
		}
		if len(o.after) == 0 {
			if err := g.open(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *change) place(o *opening, at journal.Position) error {
	if err := g.c.journal.PlaceCursor(o.plan.cursor, at, nil); err != nil {
		return fmt.Errorf("%s: %w", o.plan.name, err)
	}
	return nil
}

// unplace takes back what place has done. A cursor that stays would hold the journal.
func (g *change) unplace(o *opening) {
	if !slices.Contains(g.c.journal.Cursors(), o.plan.cursor) {
		return
	}
	if err := g.c.journal.RemoveCursor(o.plan.cursor); err != nil {
		g.c.reporter.report(codes.JournalError, "journal",
			fmt.Errorf("the place of an output that was not added stays until the next start: %w", err))
	}
}

// open opens an output where its cursor stands.
func (g *change) open(ctx context.Context, o *opening) (err error) {
	l := &ledger{}
	if o.was != nil {
		l = o.was.ledger
	} else {
		l.gone.Store(true) // until it comes
	}
	if o.adopts != "" {
		g.undo = append(g.undo, func() { g.unplace(o) })
		if err := adopt(g.c.journal, o.plan); err != nil {
			return fmt.Errorf("%s: %w", o.plan.name, err)
		}
	}
	p, err := g.c.openPump(ctx, o.plan, o.index, l, false)
	if err != nil {
		if p != nil {
			err = errors.Join(err, p.letGo())
		}
		return fmt.Errorf("%s: %w", o.plan.name, err)
	}
	o.pump = p
	g.undo = append(g.undo, func() {
		if err := p.letGo(); err != nil {
			p.report(err)
		}
	})
	return nil
}

// exchangeOutputs opens the others, having ended those before them, all at once. One that has
// changed finishes what it has begun, one that leaves delivers what it has.
func (g *change) exchangeOutputs(ctx context.Context) error {
	changes := map[*pump]bool{}
	var before []*pump
	for _, o := range g.openings {
		for _, p := range o.after {
			if _, is := changes[p]; !is {
				before = append(before, p)
			}
			changes[p] = changes[p] || p == o.was
		}
	}
	errs := make([]error, len(before))
	var ending sync.WaitGroup
	for i, p := range before {
		if !p.leaves.Load() {
			g.undo = append(g.undo, func() { g.c.runAgain(p) })
		}
		ending.Go(func() {
			if changes[p] {
				p.follower.Until(1)
			}
			if !g.c.endPump(p, g.next.RemovedDrain, changes[p]) {
				errs[i] = fmt.Errorf("%s: %w", p.name, errHangs)
			}
		})
	}
	ending.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, o := range g.openings {
		if len(o.after) > 0 {
			if err := g.open(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// runAgain opens an output that a change has ended which comes to nothing. One that hangs is opened
// when it has ended, unless another change was first.
func (c *Collector) runAgain(old *pump) {
	if old.ended == nil || old.hasEnded() {
		c.reopenPump(old)
		return
	}
	c.crew.leaving.Go(func() {
		if !closed(c.crew.hurry, old.ended) {
			return
		}
		c.crew.applying.Lock()
		defer c.crew.applying.Unlock()
		if (*c.backlogs.pumps.Load())[old.index] == old && !old.leaves.Load() {
			c.reopenPump(old)
		}
	})
}

func (c *Collector) reopenPump(old *pump) {
	c.mu.Lock()
	over := c.crew.over
	c.mu.Unlock()
	if over { // the next start goes on where it stood
		return
	}
	p, err := c.openPump(c.crew.hurry, old.plan, old.index, old.ledger, false)
	if p == nil {
		c.reporter.report(codes.OutputNotReopened, "output",
			fmt.Errorf("%s: it was ended for a change that came to nothing, and cannot be opened again: %w", old.name,
				err))
		return
	}
	if err != nil { // it is tried again
		p.report(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crew.over {
		_ = p.letGo()
		return
	}
	c.serveOutput(p)
	c.startPump(p)
	c.exchangeLocked(p)
}
