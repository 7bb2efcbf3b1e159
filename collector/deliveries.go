// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"sync"

	"github.com/spillwaylog/spillway/journal"
)

// deliveries knows up to where every output has confirmed, for acks that wait
// for that.
type deliveries struct {
	mu      sync.Mutex
	outputs []delivery
	lowest  journal.Position
	moved   chan struct{} // closed when lowest moves on
}

// delivery is up to where one output has confirmed.
type delivery struct {
	at   journal.Position
	away bool // acks do not wait for it: it was removed
	gone bool // and it has no place in the journal
}

func newDeliveries(outputs int) *deliveries {
	return &deliveries{
		outputs: make([]delivery, outputs),
		moved:   make(chan struct{}),
	}
}

// confirm notes that an output has confirmed everything up to p.
func (d *deliveries) confirm(output int, p journal.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outputs[output].at = max(d.outputs[output].at, p)
	d.movedLocked()
}

// enter says that acks wait for an output from now on, which has confirmed everything up to p.
func (d *deliveries) enter(output int, p journal.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.outputs) <= output {
		d.outputs = append(d.outputs, delivery{away: true, gone: true})
	}
	d.outputs[output] = delivery{at: p}
	d.movedLocked()
}

// leave says that acks do not wait for an output any more. gone: its place is given up, too.
func (d *deliveries) leave(output int, gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outputs[output].away, d.outputs[output].gone = true, gone
	d.movedLocked()
}

// movedLocked finds the lowest anew. It may be lower than before: an output has come that stands
// there.
func (d *deliveries) movedLocked() {
	lowest, some := journal.Position(0), false
	for _, o := range d.outputs {
		if !o.away && (!some || o.at < lowest) {
			lowest, some = o.at, true
		}
	}
	before := d.lowest
	if d.lowest = lowest; some && lowest > before {
		close(d.moved)
		d.moved = make(chan struct{})
	}
}

// passed is up to where an output has confirmed.
func (d *deliveries) passed(output int) journal.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outputs[output].at
}

// allPassed is up to where every output has confirmed.
func (d *deliveries) allPassed() journal.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lowest
}

// kept is from where on the journal is kept for an output, also for one that was removed.
func (d *deliveries) kept() journal.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	lowest := d.lowest
	for _, o := range d.outputs {
		if o.away && !o.gone {
			lowest = min(lowest, o.at)
		}
	}
	return lowest
}

// holds says whether an output that has come to p is the one that holds the journal: no other that
// is there stands before it, nor one that was removed in an earlier segment, whose place goes
// first.
func (d *deliveries) holds(p journal.Position) bool {
	return p <= d.allPassed() && p>>32 <= d.kept()>>32
}

// wait returns when every output has confirmed p.
func (d *deliveries) wait(ctx context.Context, p journal.Position) error {
	d.mu.Lock()
	for d.lowest < p {
		moved := d.moved
		d.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
		d.mu.Lock()
	}
	d.mu.Unlock()
	return nil
}
