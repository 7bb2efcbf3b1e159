// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// compareInputs says which inputs are new, gone or changed. One that leaves is there no more: it
// was ended for a change that came to nothing, and could not be opened again.
func (g *change) compareInputs(plans []inputPlan) {
	there := slices.Clone(g.c.inputs)
	for i := range plans {
		n := slices.IndexFunc(there, func(in *intake) bool { return in.plan.end == plans[i].end && !in.leaves.Load() })
		if n < 0 {
			g.inputs, g.order = append(g.inputs, plans[i]), append(g.order, nil)
			continue
		}
		g.order = append(g.order, there[n])
		there = slices.Delete(there, n, n+1)
	}
	g.goneInputs = there
}

// inTheWay are the inputs that have to end before one can be opened: they listen where it will, or
// store where they stand under the same key.
func (g *change) inTheWay(p *inputPlan) []*intake {
	g.c.mu.Lock()
	leavers := g.c.crew.leavers
	g.c.mu.Unlock()
	return slices.DeleteFunc(slices.Concat(g.goneInputs, leavers), func(in *intake) bool {
		q := in.plan
		return (p.key == "" || p.key != q.key) && (p.source == "" || p.source != q.source) &&
			(p.spot == "" || p.spot != in.spot())
	})
}

// openInputs opens those inputs that nothing stands in the way of.
func (g *change) openInputs(context.Context) error {
	g.taken = make([]*intake, len(g.inputs))
	for i := range g.inputs {
		if len(g.inTheWay(&g.inputs[i])) == 0 {
			if err := g.openInput(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *change) openInput(i int) error {
	in, err := g.c.openInput(&g.inputs[i])
	if err != nil {
		return err
	}
	g.taken[i] = in
	g.undo = append(g.undo, func() {
		if err := in.close(); err != nil {
			g.c.reporter.report(codes.InputError, "input", err)
		}
	})
	return nil
}

// exchangeInputs opens the others, having ended what stands in their way. Connections of Forward
// inputs go on until the change is made.
func (g *change) exchangeInputs(context.Context) error {
	for i := range g.inputs {
		if g.taken[i] != nil {
			continue
		}
		for _, in := range g.inTheWay(&g.inputs[i]) {
			if err := g.endInput(in); err != nil {
				return err
			}
		}
		if err := g.openInput(i); err != nil {
			return err
		}
	}
	return nil
}

// endInput ends an input that is removed, or was. To take it back is to open it again.
func (g *change) endInput(in *intake) error {
	left := in.leaves.Swap(true)
	if !left {
		g.undo = append(g.undo, func() { g.c.openAgain(in, g.next.RemovedDrain) })
	}
	if !g.c.endInput(in, g.next.RemovedDrain) {
		return fmt.Errorf("%s: %w", in.account.name, errInputHangs)
	}
	return nil
}

// openAgain opens an input that a change has ended which comes to nothing.
func (c *Collector) openAgain(in *intake, patience time.Duration) {
	p, err := planInput(&c.config, &in.plan.end)
	var again *intake
	if err == nil {
		again, err = c.openInput(&p)
	}
	if err != nil {
		c.reporter.report(codes.InputNotReopened, "input",
			fmt.Errorf("%s: it was ended for a change that came to nothing, and cannot be opened again: %w",
				in.account.name, err))
		return
	}
	c.mu.Lock()
	if c.crew.over {
		c.mu.Unlock()
		_ = again.close()
		return
	}
	c.bookLocked(again)
	c.inputs = slices.Clone(c.inputs)
	c.inputs[slices.Index(c.inputs, in)] = again
	c.crew.leavers = append(c.crew.leavers[:len(c.crew.leavers):len(c.crew.leavers)], in)
	c.startInput(again)
	c.mu.Unlock()
	again.tell()
	c.crew.leave(func() { c.leaveInput(in, patience) })
}
