// SPDX-License-Identifier: Apache-2.0

package mover

import "context"

// A Mover takes events and carries them to the destination. All methods may be called by many
// goroutines.
//
// How it is organised: what is below calls what is above it in this picture, and never the other
// way round.
//
//	core (core.go)         configuration, life, mailbox, the disk's goroutine, own rings, accounts
//	flight (flight.go)     a chunk from the cut to its end
//	delivery, packer,      what the destination has; cutting windows;
//	spiller                what goes to the spill
//	legacy (legacy.go)     what dead processes left
//	loop (run.go)          the mover's goroutine: does what is to do, and rests
//	closer (close.go)      ends it
//
// The parts from the delivery to the loop belong to the mover's goroutine; others reach it by the
// mailbox. A second goroutine does what may hang in a disk (disk.go, shelf.go). Lock order:
// rings.mu, mailbox.mu; delivery.mu, states.mu and waiters.mu are held alone.
type Mover struct {
	*core
	loop   *loop
	closer *closer
}

// Open opens a ring, starts the mover's goroutine and looks for what dead processes left.
func Open(c *Config) (*Mover, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := newCore(&cfg)
	if err != nil {
		return nil, err
	}
	states, dead := &states{core: g}, &dead{core: g}
	l := newLoop(g, states, dead)
	m := &Mover{core: g, loop: l, closer: newCloser(l, states, dead)}
	l.legacy.begin()
	go m.closer.run()
	return m, nil
}

// Flush returns when all that was accepted before the call is delivered, handed over or dropped, or
// when ctx ends.
func (m *Mover) Flush(ctx context.Context) error { return m.loop.flush(ctx) }

// Close stops accepting, flushes until ctx ends, and lets go of everything, the destination
// included. When it could not deliver all, its error wraps an *UndeliveredError. What it could not
// stop, a call that hangs in a disk or in the destination, is named in the error; it touches
// nothing of the caller's. Calls after the first wait for it.
func (m *Mover) Close(ctx context.Context) error { return m.closer.close(ctx) }

// Miss counts events that the caller itself left out, for the next summary event to tell.
func (m *Mover) Miss(r Reason, n uint64) {
	if r < reasons && !m.closed.Load() {
		m.count.miss(r, n)
	}
}

// Stats returns a picture of the Mover.
func (m *Mover) Stats() Stats { return m.count.stats() }
