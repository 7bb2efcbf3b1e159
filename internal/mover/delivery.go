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
	pool     *pool
	states   *states
	dead     *dead
	maxBytes int64     // bytes of entries that may be there
	active   shipper   // what the chunks come from
	out      []*flight // the chunks, in no order
	windows  int       // sequences that have some of them
	bytes    int64     // their entries
	tookAt   time.Time // when the destination took something last, or got something after it had nothing
	givenUp  []*flight // chunks that it gave up

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
func (d *delivery) roomy() bool {
	few := len(d.out) < d.cfg.Window
	if d.cfg.Ordered {
		few = len(d.out) < maxInDelivery && d.windows < d.cfg.Window
	}
	return few && (d.bytes < d.maxBytes || len(d.out) == 0)
}

// stalled says that the destination has chunks, and has taken none of them for a while.
func (d *delivery) stalled() bool { return len(d.out) > 0 && time.Since(d.tookAt) >= d.cfg.quiet }

// stands says that the destination has had chunks for a while, and takes none of them. It may be
// one that a server refuses, without a word. Others have to come to show that, so the next shipper
// goes on; a host gets them in order all the same. Not so where there are states.
func (d *delivery) stands() bool { return d.resumer == nil && d.stalled() }

// pinning are the chunks of own rings which these have to keep, since no spill has them, as they
// were cut.
func (d *delivery) pinning() []*flight {
	var all []*flight
	for _, f := range d.out {
		if f.from == nil && f.feed.Own && f.inSpill == nil && f.inJob == nil {
			all = append(all, f)
		}
	}
	asCut(all, *d.rings.all.Load())
	return all
}

// submit hands a flight to the destination.
func (d *delivery) submit(f *flight) {
	if len(d.out) == 0 {
		d.tookAt = time.Now()
	}
	f.at = len(d.out)
	d.out = append(d.out, f)
	f.flying = true
	if q := f.Runs; q != nil {
		if q.Flying++; q.Flying == 1 {
			d.windows++
		}
	}
	d.bytes += int64(len(f.Chunk.Entries))
	d.count.inFlight.Store(int64(len(d.out)))
	if d.byOrigin != nil {
		d.byOrigin.SubmitFrom(f.origin().index, &f.Chunk, f.landed)
		return
	}
	d.cfg.Destination.Submit(&f.Chunk, f.landed)
}

// land is what the destination calls. A state is stored before it returns: the destination counts
// on that. Chunks whose state comes with a later one wait for that, or their marks could go while
// the state that a successor would find in the ring is still the one before them.
func (d *delivery) land(f *flight, r output.Result) {
	if d.dead.keeps(&r) {
		d.dead.keep(f, r, d.touchDown)
		return
	}
	d.touchDown(f, r)
}

// touchDown is the end of land: the chunk needs nothing more.
func (d *delivery) touchDown(f *flight, r output.Result) {
	stored := r.State != nil && r.Err == nil
	if stored {
		d.states.keep(f, r.State)
		d.cfg.fault("stored")
	}
	r.State = nil
	f.res = r
	d.mu.Lock()
	switch {
	case d.closed:
	case d.resumer != nil && !stored && r.Err == nil && !r.HandedOver: // a later one brings it
		d.more = append(d.more, f)
		d.mu.Unlock()
		return
	case stored:
		d.done = append(append(d.done, d.more...), f)
		clear(d.more)
		d.more = d.more[:0]
	default:
		d.done = append(d.done, f)
	}
	d.mu.Unlock()
	d.mail.wake()
}

// close has what lands later ignored.
func (d *delivery) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
}

// collect takes back the chunks that the destination is done with.
func (d *delivery) collect() {
	d.mu.Lock()
	d.landed, d.done = d.done, d.landed[:0]
	d.mu.Unlock()
	now := time.Now()
	for i, f := range d.landed {
		d.landing(f, now)
		d.landed[i] = nil
	}
}

// rejected accounts for the events that the destination refuses for good, and tells the first
// reason. What is no dead letter is lost.
func (d *delivery) rejected(f *flight) uint64 {
	n := uint64(0)
	for _, r := range output.Refusals(f.res.Rejected, f.Chunk.Events) {
		n += uint64(len(r.Entries))
	}
	if n == 0 {
		return 0
	}
	d.count.letters.Add(f.kept)
	end := "which are lost"
	if lost := n - f.kept; lost > 0 {
		d.count.miss(Lost, lost)
		if f.kept > 0 {
			end = fmt.Sprintf("of which %d are lost, and the others are dead letters in %s", lost, d.dead.dir())
		}
	} else {
		end = "which are dead letters in " + d.dead.dir()
	}
	d.report(fmt.Errorf("the destination refuses %d events of %s for good, %s: %w", n, f.Chunk.Tag, end,
		f.res.Rejected[0].Err))
	return n
}

// landing takes a flight back from the destination.
func (d *delivery) landing(f *flight, now time.Time) {
	last := d.out[len(d.out)-1]
	d.out[f.at], last.at = last, f.at
	d.out[len(d.out)-1] = nil
	d.out = d.out[:len(d.out)-1]
	if q := f.Runs; q != nil {
		if q.Flying--; q.Flying == 0 {
			d.windows--
		}
	}
	d.bytes -= int64(len(f.Chunk.Entries))
	d.count.inFlight.Store(int64(len(d.out)))
	switch {
	case f.res.Err == nil:
	case f.aside: // the next process gets it from there
		f.inSpill.rests(f)
		d.pool.release(f)
		return
	default:
		f.at = givenUpAt
		d.givenUp = append(d.givenUp, f)
		return
	}
	d.tookAt = now
	d.count.inHand.sub(uint64(f.Chunk.Events), f.Bytes)
	n := uint64(f.Chunk.Events) - d.rejected(f)
	if f.res.HandedOver {
		d.count.handedOver.Add(n)
	} else {
		d.count.delivered.Add(n)
	}
	if f.res.MaybeRepeated {
		d.count.repeated.Add(n)
	}
	d.count.torn.Add(uint64(f.res.Torn))
	if n > 0 && !f.res.HandedOver && d.cfg.Delivered != nil {
		d.cfg.Delivered(&f.Chunk)
	}
	d.cfg.fault("delivered")
	f.leaveSpill()
	f.Unmark()
	d.cfg.fault("cleared")
	if f.from != nil {
		f.from.doneWith(f.seq)
	}
	if f.span != nil {
		f.span.left--
	}
	d.pool.release(f)
}
