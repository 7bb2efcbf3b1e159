// SPDX-License-Identifier: Apache-2.0

package mover

import "sync/atomic"

// A phase is how far the life of a Mover has come, as its goroutine sees it. It only goes on.
//
//	          Close            Close is out of time      there is memory to save      Close has done
//	running ─────────► sealed ──────────────────► stopped ───────────────────► saving ────┐  what it could
//	   │                 │                           │                                    ▼
//	   └─────────────────┴───────────────────────────┴──────────────────────────────► leaving
type phase uint8

const (
	running phase = iota // events come
	sealed               // nothing more is accepted; what is held is delivered, in a hurry
	stopped              // nothing more is submitted
	saving               // what is in plain memory goes to the spill, the destination being closed
	leaving              // the goroutine is to end
)

// A life is that of a Mover: its phase, which is its goroutine's, and what others see of it.
type life struct {
	phase   phase
	closed  atomic.Bool
	closing chan struct{} // closed with it
	gaveUp  chan struct{} // closed when Close waits no longer: what is tried again and again stops
	ended   chan struct{} // closed when the mover's goroutine has ended
}

func newLife() life {
	return life{closing: make(chan struct{}), gaveUp: make(chan struct{}), ended: make(chan struct{})}
}

// enter goes on to a phase, unless a later one has been entered.
func (l *life) enter(p phase) { l.phase = max(l.phase, p) }

// over says that Close waits for nothing any more.
func (l *life) over() bool {
	select {
	case <-l.gaveUp:
		return true
	default:
		return false
	}
}
