// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/window"
)

// delivery is what the destination has. All but land is the mover's goroutine's.
type delivery struct {
	*core
	pool    *pool
	states  *states
	dead    *dead
	most    int64     // bytes of entries that may be there
	active  shipper   // what the chunks come from
	out     []*flight // the chunks, in no order
	windows int       // sequences that have some of them
	bytes   int64     // their entries
	tookAt  time.Time // when the destination took something last, or got something after it had nothing
	givenUp []*flight // chunks that it gave up

	mu     sync.Mutex
	done   []*flight
	more   []*flight // written, but the state that is for them has not come
	closed bool
	landed []*flight // of done, being looked at; the mover's goroutine's
}

// maxInDelivery is how many chunks may be with an ordered destination.
const maxInDelivery = 4 * window.MaxRuns

// givenUpAt is flight.at of a chunk that the destination gave up.
const givenUpAt = -1

// A shipper is what chunks come from: a ring, a spill, or what was cut from them before.
type shipper interface {
	take(p *packer) (flights []*flight, ok bool) // what is to be submitted next; false: nothing now
	sent() bool                                  // says that the destination has all that there is, or that it is over
}

// roomy says that the destination may have another chunk.
func (a *delivery) roomy() bool {
	few := len(a.out) < a.cfg.Window
	if a.cfg.Ordered {
		few = len(a.out) < maxInDelivery && a.windows < a.cfg.Window
	}
	return few && (a.bytes < a.most || len(a.out) == 0)
}

// stalled says that the destination has chunks, and has taken none of them for a while.
func (a *delivery) stalled() bool { return len(a.out) > 0 && time.Since(a.tookAt) >= a.cfg.quiet }

// stands says that the destination has had chunks for a while, and takes none of them. It may be
// one that a server refuses, without a word. Others have to come to show that, so the next shipper
// goes on; a host gets them in order all the same. Not so where there are states.
func (a *delivery) stands() bool { return a.resumer == nil && a.stalled() }

// pinning are the chunks of own rings which these have to keep, since no spill has them, as they
// were cut.
func (a *delivery) pinning() []*flight {
	var all []*flight
	for _, f := range a.out {
		if f.from == nil && f.feed.Own && f.inSpill == nil && f.inJob == nil {
			all = append(all, f)
		}
	}
	asCut(all, *a.rings.all.Load())
	return all
}

// submit hands a flight to the destination.
func (a *delivery) submit(f *flight) {
	if len(a.out) == 0 {
		a.tookAt = time.Now()
	}
	f.at = len(a.out)
	a.out = append(a.out, f)
	f.flying = true
	if q := f.Runs; q != nil {
		if q.Flying++; q.Flying == 1 {
			a.windows++
		}
	}
	a.bytes += int64(len(f.Chunk.Entries))
	a.count.inFlight.Store(int64(len(a.out)))
	if a.byOrigin != nil {
		a.byOrigin.SubmitFrom(f.origin().index, &f.Chunk, f.landed)
		return
	}
	a.cfg.Destination.Submit(&f.Chunk, f.landed)
}

// land is what the destination calls. A state is stored before it returns: the destination counts
// on that. Chunks whose state comes with a later one wait for that, or their marks could go while
// the state that a successor would find in the ring is still the one before them.
func (a *delivery) land(f *flight, r output.Result) {
	if a.dead.keeps(&r) {
		a.dead.keep(f, r, a.touchDown)
		return
	}
	a.touchDown(f, r)
}

// touchDown is the end of land: the chunk needs nothing more.
func (a *delivery) touchDown(f *flight, r output.Result) {
	stored := r.State != nil && r.Err == nil
	if stored {
		a.states.keep(f, r.State)
		a.cfg.fault("stored")
	}
	r.State = nil
	f.res = r
	a.mu.Lock()
	switch {
	case a.closed:
	case a.resumer != nil && !stored && r.Err == nil && !r.HandedOver: // a later one brings it
		a.more = append(a.more, f)
		a.mu.Unlock()
		return
	case stored:
		a.done = append(append(a.done, a.more...), f)
		clear(a.more)
		a.more = a.more[:0]
	default:
		a.done = append(a.done, f)
	}
	a.mu.Unlock()
	a.mail.wake()
}

// close has what lands later ignored.
func (a *delivery) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
}

// collect takes back the chunks that the destination is done with.
func (a *delivery) collect() {
	a.mu.Lock()
	a.landed, a.done = a.done, a.landed[:0]
	a.mu.Unlock()
	now := time.Now()
	for i, f := range a.landed {
		a.landing(f, now)
		a.landed[i] = nil
	}
}

// rejected accounts for the events that the destination refuses for good, and tells the first
// reason. What is no dead letter is lost.
func (a *delivery) rejected(f *flight) uint64 {
	n := uint64(0)
	for _, r := range output.Refusals(f.res.Rejected, f.Chunk.Events) {
		n += uint64(len(r.Entries))
	}
	if n == 0 {
		return 0
	}
	a.count.letters.Add(f.kept)
	end := "which are lost"
	if lost := n - f.kept; lost > 0 {
		a.count.miss(Lost, lost)
		if f.kept > 0 {
			end = fmt.Sprintf("of which %d are lost, and the others are dead letters in %s", lost, a.dead.dir())
		}
	} else {
		end = "which are dead letters in " + a.dead.dir()
	}
	a.report(fmt.Errorf("the destination refuses %d events of %s for good, %s: %w", n, f.Chunk.Tag, end,
		f.res.Rejected[0].Err))
	return n
}

// landing takes a flight back from the destination.
func (a *delivery) landing(f *flight, now time.Time) {
	last := a.out[len(a.out)-1]
	a.out[f.at], last.at = last, f.at
	a.out[len(a.out)-1] = nil
	a.out = a.out[:len(a.out)-1]
	if q := f.Runs; q != nil {
		if q.Flying--; q.Flying == 0 {
			a.windows--
		}
	}
	a.bytes -= int64(len(f.Chunk.Entries))
	a.count.inFlight.Store(int64(len(a.out)))
	switch {
	case f.res.Err == nil:
	case f.aside: // the next process gets it from there
		f.inSpill.rests(f)
		a.pool.release(f)
		return
	default:
		f.at = givenUpAt
		a.givenUp = append(a.givenUp, f)
		return
	}
	a.tookAt = now
	a.count.inHand.sub(uint64(f.Chunk.Events), f.Bytes)
	n := uint64(f.Chunk.Events) - a.rejected(f)
	if f.res.HandedOver {
		a.count.handedOver.Add(n)
	} else {
		a.count.delivered.Add(n)
	}
	if f.res.MaybeRepeated {
		a.count.repeated.Add(n)
	}
	a.count.torn.Add(uint64(f.res.Torn))
	if n > 0 && !f.res.HandedOver && a.cfg.Delivered != nil {
		a.cfg.Delivered(&f.Chunk)
	}
	a.cfg.fault("delivered")
	f.leaveSpill()
	f.Unmark()
	a.cfg.fault("cleared")
	if f.from != nil {
		f.from.doneWith(f.seq)
	}
	if f.span != nil {
		f.span.left--
	}
	a.pool.release(f)
}
