// SPDX-License-Identifier: Apache-2.0

package budget

import "sync/atomic"

// A Pace is how a connection's peer goes on with what it sends. The connection's reader writes it,
// the watch reads it, and so does whatever wants another connection's place.
type Pace struct {
	w       *Watch
	turn    atomic.Uint64 // odd while the reader waits for its peer
	bytes   atomic.Int64  // read
	stalled atomic.Int64  // since when, by the watch, it has brought next to nothing of a message; 0: it is in none
	pause   atomic.Int64  // the longest after which it went on with a message
	idle    atomic.Int64  // since when, by the clock, there was nothing to read
	came    int64         // bytes at stalled
	paused  int64         // the longest pause in the message in progress
	left    int64         // when it was last not read for
}

// Begin makes a blank pace one that a watch looks at. clock is a time that only grows.
func (p *Pace) Begin(w *Watch, clock int64) {
	p.w = w
	p.idle.Store(clock)
}

// Wait says that the reader begins to wait for its peer; Go on, that it does not any more.
func (p *Pace) Wait() { p.turn.Add(1) }

// Go is described at Wait.
func (p *Pace) Go() { p.turn.Add(1) }

// Waits tells whether the reader waits for its peer.
func (p *Pace) Waits() bool { return p.turn.Load()&1 == 1 }

// Rest notes that there is nothing to read.
func (p *Pace) Rest(clock int64) { p.idle.Store(clock) }

// Idle is since when there was nothing to read.
func (p *Pace) Idle() int64 { return p.idle.Load() }

// Read notes that n bytes were read.
func (p *Pace) Read(n int) {
	p.left = p.w.looked.Load()
	p.bytes.Add(int64(n))
}

// Placed notes that n bytes are there which were read before.
func (p *Pace) Placed(n int) { p.bytes.Add(int64(n)) }

// Bytes is how many were read.
func (p *Pace) Bytes() int64 { return p.bytes.Load() }

// Between notes, before the peer is waited for, that no message is in progress.
func (p *Pace) Between() {
	if p.stalled.Load() != 0 {
		p.stalled.Store(0)
		p.w.completed(p.paused)
		p.paused = 0
	}
}

// Within notes, before the peer is waited for, that a message is in progress. Since it was last
// waited for no time has passed for it. came is how much it has sent, held what its connection
// holds.
func (p *Pace) Within(came, held int64) {
	now := p.w.looked.Load()
	if since := p.stalled.Load(); since != 0 && now != p.left {
		p.stalled.Store(since + now - p.left)
	}
	p.brought(now, came, held)
}

// Brought notes, while the peer is waited for, how much it has sent.
func (p *Pace) Brought(came, held int64) {
	if p.stalled.Load() != 0 {
		p.brought(p.w.looked.Load(), came, held)
	}
}

// brought notes whether the peer goes on: it does when it has brought one part in stallShare of
// what the connection holds.
func (p *Pace) brought(now, came, held int64) {
	since := p.stalled.Load()
	if since == 0 || came-p.came > held/stallShare {
		if p.came = came; since != 0 && now > since {
			p.paused = max(p.paused, now-since)
			if now-since > p.pause.Load() {
				p.pause.Store(now - since)
			}
		}
		p.stalled.Store(now)
	}
}

// Goes notes that it goes on, whatever it has sent.
func (p *Pace) Goes() { p.stalled.Store(p.w.looked.Load()) }

// Leave notes that what was in progress is none of its messages.
func (p *Pace) Leave() { p.stalled.Store(0) }

// InMessage tells whether a message is in progress.
func (p *Pace) InMessage() bool { return p.stalled.Load() != 0 }

// Late is for how long it has not gone on, at a time of the watch, if that is more than there is
// patience for; else 0.
func (p *Pace) Late(now int64) int64 {
	since := p.stalled.Load()
	if since == 0 || !p.Waits() || now-since < p.w.with(p.pause.Load()) {
		return 0 // in no message, or not waiting for its peer, or that goes on
	}
	return now - since
}
