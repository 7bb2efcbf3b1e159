// SPDX-License-Identifier: Apache-2.0

package mover

// A phase is how far the life of a Mover has come, as its goroutine sees it. It only goes on.
//
//	          Close            Close is out of time      there is memory to save      Close has done
//	running ─────────► sealed ──────────────────► stopped ───────────────────► pouring ───┐  what it could
//	   │                 │                           │                                    ▼
//	   └─────────────────┴───────────────────────────┴──────────────────────────────► leaving
type phase uint8

const (
	running phase = iota // events come
	sealed               // nothing more is accepted; what is held is delivered, in a hurry
	stopped              // nothing more is submitted
	pouring              // what is in plain memory goes to the spill, the destination being closed
	leaving              // the goroutine is to end
)

// enter goes on to a phase, unless a later one has been entered.
func (l *loop) enter(p phase) { l.phase = max(l.phase, p) }
