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
	outputs []journal.Position
	lowest  journal.Position
	moved   chan struct{} // closed when lowest moves
}

func newDeliveries(outputs int) *deliveries {
	return &deliveries{
		outputs: make([]journal.Position, outputs),
		moved:   make(chan struct{}),
	}
}

// confirm notes that an output has confirmed everything up to p.
func (d *deliveries) confirm(output int, p journal.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.outputs[output] = max(d.outputs[output], p)
	lowest := d.outputs[0]
	for _, p := range d.outputs {
		lowest = min(lowest, p)
	}
	if lowest > d.lowest {
		d.lowest = lowest
		close(d.moved)
		d.moved = make(chan struct{})
	}
}

// passed is up to where an output has confirmed.
func (d *deliveries) passed(output int) journal.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.outputs[output]
}

// allPassed is up to where every output has confirmed.
func (d *deliveries) allPassed() journal.Position {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lowest
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
