// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/step"
)

// What an error of Apply may wrap.
var (
	// ErrRestart is there for each setting that takes a restart.
	ErrRestart = errors.New("restart")
	// ErrCredentials says that a file of credentials is not good.
	ErrCredentials = errors.New("credentials")
)

// Apply makes a running collector do what a configuration says, without a restart:
//
//   - An input that is new listens. One that is gone accepts nothing more and finishes what has
//     come, acks included.
//   - An output that is new gets what is stored from now on, or, if it was removed before and has
//     its place still, what comes behind that. One that is gone delivers what was stored for it until
//     now, for at most Config.RemovedDrain; then its place in the journal is kept. That holds up
//     nobody: when the journal is full, places of removed outputs are given up, and what waited
//     there is counted as dropped. Open gives up those that its Config does not name.
//   - An end that has changed (its URL, under the same name) is removed and added. An output goes on
//     where it stood: what has its cursor is the same output, as it is over a restart.
//   - An output for which the routes say something else has changed, too: new rules and steps begin
//     behind what is on its way.
//   - What did not change is not touched, connections included.
//
// All changes of outputs are at one place of the journal: an output that takes another one's place
// begins where that one ends.
//
// The files of all inputs' credentials are read now. They are also read when they change. Of those
// that are not good the old version stays in force, and the error says why. Connections whose key,
// user or certificate is good no more are ended. The files of lookups are read before all else,
// also for outputs that do not change; one that is not good is an error.
//
// An error says all that is wrong, and nothing was changed then but credentials and the tables of
// lookups, which are a matter of their own: what was opened is closed, and what had to be ended
// first, such as an input on the same port, is opened again. RemovedDrain counts from now on; any
// other setting that differs from the Config that the collector was opened with is refused with
// ErrRestart. Zero values mean defaults in both. Log, Synced, Stdin, Stdout, Expressions,
// InputKinds and OutputKinds are the program's, no settings: those given to Open stay.
//
// Apply may be called at any time, and by several at once. It returns when the new ends work; those
// that were removed end meanwhile. It waits for outputs that have changed, or give up a file to
// another one, at most for RemovedDrain.
func (c *Collector) Apply(config *Config) error {
	c.crew.applying.Lock()
	defer c.crew.applying.Unlock()
	var asked Config
	if config != nil {
		asked = *config
	}
	now := &c.config
	asked.Log, asked.Synced, asked.Stdin, asked.Stdout, asked.InputKinds, asked.OutputKinds =
		now.Log, now.Synced, now.Stdin, now.Stdout, now.InputKinds, now.OutputKinds
	asked.Expressions = now.Expressions
	next, err := asked.withDefaults()
	if err != nil {
		return err
	}
	p, err := next.plan(c.routes.Load())
	if err := errors.Join(now.differs(&next), err); err != nil {
		return err
	}
	c.mu.Lock() // against Close
	over := c.crew.over || c.journal == nil
	present := c.inputs
	c.mu.Unlock()
	if over {
		return errOver
	}
	ch := &change{c: c, next: &next, routes: p.routes}
	ch.compare(p.inputs, p.outputs)
	if err := ch.check(); err != nil {
		return err
	}
	if err := reloadCredentials(present); err != nil {
		return err
	}
	if ch.none() {
		if !ch.swap() { // their order may be another one
			return errOver
		}
		return nil
	}
	return ch.make()
}

var errOver = errors.New("collector: it ends, and changes nothing any more")

// reloadCredentials reads the files of inputs again.
func reloadCredentials(inputs []*intake) error {
	var errs []error
	for _, in := range inputs {
		r, ok := in.Input.(interface{ Reload() error })
		if !ok {
			continue
		}
		if err := r.Reload(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", in.account.name, err))
		}
	}
	if errs == nil {
		return nil
	}
	return &credentialsError{errors.Join(errs...)}
}

// credentialsError is an ErrCredentials with the text of another one.
type credentialsError struct{ error }

func (e *credentialsError) Unwrap() []error { return []error{ErrCredentials, e.error} }

// differs returns what cannot change while the collector runs, with defaults filled in on both
// sides.
func (c *Config) differs(next *Config) error {
	var errs []error
	for _, f := range []struct {
		name     string
		old, new any
	}{
		{"dir", c.Dir, next.Dir},
		{"ack", c.Ack, next.Ack},
		{"journal bytes", c.JournalBytes, next.JournalBytes},
		{"letter bytes", c.LetterBytes, next.LetterBytes},
		{"drop letters", c.DropLetters, next.DropLetters},
		{"max chunk", c.MaxChunk, next.MaxChunk},
		{"max unpacked", c.MaxUnpacked, next.MaxUnpacked},
		{"max event", c.MaxEvent, next.MaxEvent},
		{"memory", c.Memory, next.Memory},
		{"refuse invalid", c.RefuseInvalid, next.RefuseInvalid},
		{"drain", c.Drain, next.Drain},
	} {
		if f.old != f.new {
			errs = append(errs, fmt.Errorf("%s: it changed from %v to %v; %w to change it", f.name, f.old, f.new,
				ErrRestart))
		}
	}
	return errors.Join(errs...)
}

// A change is what an Apply is about to do. Each step adds what takes it back.
type change struct {
	c      *Collector
	next   *Config
	routes *step.Routes
	undo   []func()

	inputs     []inputPlan // that are new or have changed
	goneInputs []*intake   // that are removed or have changed
	taken      []*intake   // opened for inputs, in their order
	order      []*intake   // all that there will be; nil: the next of taken

	openings []*opening // outputs that are new, or changed, or come again
	leaves   []*pump    // those that are removed
	stored   int64      // events, when the changes of outputs took place
}

// none says whether nothing has changed.
func (g *change) none() bool {
	return len(g.inputs)+len(g.goneInputs)+len(g.openings)+len(g.leaves) == 0
}

// make does it, or nothing.
func (g *change) make() error {
	c := g.c
	ctx, cancel := context.WithCancel(c.crew.hurry)
	defer cancel()
	var err error
	for _, step := range []func(context.Context) error{
		g.openOutputs, g.openInputs, g.exchangeOutputs,
		g.exchangeInputs,
	} {
		if err == nil {
			err = step(ctx)
		}
	}
	if err == nil && !g.swap() {
		err = errOver
	}
	if err != nil {
		for i := len(g.undo) - 1; i >= 0; i-- {
			g.undo[i]()
		}
		return err
	}
	g.commit()
	return nil
}

// check looks at what can be seen before anything is touched.
func (g *change) check() error {
	var errs []error
	for i := range g.inputs {
		if p := &g.inputs[i]; p.check != nil {
			errs = append(errs, p.check())
		}
	}
	for _, o := range g.openings {
		errs = append(errs, o.plan.try(g.c.config.Ack, g.c.config.Log))
	}
	return errors.Join(errs...)
}

// commit makes the change known, and has what is gone end.
func (g *change) commit() {
	c := g.c
	for _, o := range g.openings {
		o.tell(c)
	}
	for _, in := range g.taken {
		in.tell()
	}
	patience := g.next.RemovedDrain
	for _, p := range g.leaves {
		codes.OutputLeaves.Info(c.config.Log, "output to be removed: it delivers what it has", "output", p.name,
			"within", patience)
		c.crew.leave(func() { c.leaveOutput(p, patience) })
	}
	for _, in := range g.goneInputs {
		c.crew.leave(func() { c.leaveInput(in, patience) })
	}
	for _, o := range g.openings {
		if o.adopts != "" { // its place has another name now
			if err := c.journal.RemoveCursor(o.adopts); err != nil {
				c.reporter.report(codes.JournalError, "journal", err)
			}
		}
	}
	c.noteNames()
	select {
	case c.crew.ended <- struct{}{}: // those that are left may be over
	default:
	}
}

// swap puts the ends that there are now in the place of those that there were, and lets run what is
// new. It reports false if the collector ends.
func (g *change) swap() bool {
	c := g.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crew.over {
		return false
	}
	for _, in := range g.goneInputs {
		in.leaves.Store(true)
		c.crew.leavers = append(c.crew.leavers[:len(c.crew.leavers):len(c.crew.leavers)], in)
	}
	next := g.taken
	for i, in := range g.order {
		if in == nil {
			c.bookLocked(next[0])
			g.order[i], next = next[0], next[1:]
		}
	}
	c.inputs = g.order
	for _, p := range g.leaves {
		p.leaves.Store(true)
		c.store.delivered.leave(p.index, false)
	}
	for _, o := range g.openings {
		if o.isNew {
			o.pump.comeLocked(g.stored)
		}
		c.serveOutput(o.pump)
		c.startPump(o.pump)
		c.exchangeLocked(o.pump)
	}
	for _, in := range g.taken {
		c.startInput(in)
	}
	c.config.Inputs, c.config.Outputs, c.config.Routes = g.next.Inputs, g.next.Outputs, g.next.Routes
	c.config.RemovedDrain = g.next.RemovedDrain
	c.routes.Store(g.routes)
	return true
}
