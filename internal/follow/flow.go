// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

// A flow carries records from the journal into the hands of the output, and takes back what that
// has finished.
type flow struct {
	*core
	care     *care
	opened   *opened
	flights  *flights
	splitter *splitter
	sieve    *sieve
	fetcher  *fetcher
	outcomes *outcomes

	landed []*flight // as taken from the inbox
	parted bool      // the output has a part of a record that is beyond the finished prefix
	latest []byte    // the state that came with it
}

// next reads a record and submits it. It reports false when there is none, or none to be taken.
func (w *flow) next() (more bool, err error) {
	s := w.flights
	x := s.newFlight()
	if ok, err := w.read(x); !ok {
		s.recycle(x)
		return false, err
	}
	if !x.part && w.cfg.Sift.Remembers() {
		var news int64
		x.learnt, news = w.cfg.Sift.Learnt()
		x.bytes += news
	}
	if w.takesWhole {
		if err := w.outcomes.refuseNow(w.splitter.ctx, x); err != nil {
			s.recycle(x)
			return false, err
		}
	}
	if w.taken == w.committed {
		w.since = time.Now()
	}
	from := w.taken
	w.taken = x.end
	w.volume += x.bytes + 1
	s.push(x)
	if x.broken || x.deadly || x.idle {
		w.splitter.cutting = w.splitter.cutting && x.idle && x.part
		x.done = true
		w.advance()
		return true, nil
	}
	switch {
	case w.cfg.Identify == nil:
	case x.sifted:
		x.id = w.sieve.identify(x.id[:0], x)
		x.own.ID, x.own.IDBin, x.own.UniqueID = x.id, false, true
	case x.part || x.first > 0:
		x.id = w.splitter.split.identify(w.cfg.Identify, x.id[:0])
		x.own.ID, x.own.IDBin, x.own.UniqueID = x.id, false, true
	case x.chunk.ID == nil || !x.chunk.UniqueID:
		if x.chunk != &x.own {
			x.own = *x.chunk
			x.chunk = &x.own
		}
		x.id = w.cfg.Identify(x.id[:0], from, x.end)
		x.own.ID, x.own.IDBin, x.own.UniqueID = x.id, false, true
	}
	w.splitter.cutting = w.splitter.cutting && x.part
	if s.inFlight == 0 {
		w.moved.Store(time.Now().UnixNano())
	}
	s.inFlight++
	w.sent.events.Add(int64(x.chunk.Events))
	w.sent.chunks.Add(1)
	o := w.opened
	x.gen = o.gen
	land := x.land
	if o.cfg.Guard {
		land = o.once(land)
	}
	switch {
	case x.long != nil:
		o.longer.SubmitLong(o.tokenOf(x), x.chunk, x.long, land)
	case o.at != nil:
		o.at.SubmitAt(o.tokenOf(x), x.chunk, land)
	default:
		o.out.Submit(x.chunk, land)
	}
	return true, nil
}

// read fills a flight with the next record, or piece of one, if that may be taken.
func (w *flow) read(x *flight) (ok bool, err error) {
	w.until.mu.Lock()
	defer w.until.mu.Unlock()
	if w.until.reached && !w.splitter.cutting {
		return false, nil
	}
	if w.care.deadly() {
		return w.fetcher.takeDeadly(x)
	}
	return w.fetcher.read(x)
}

// collect takes back what outputs have finished.
func (w *flow) collect() {
	s := w.flights
	w.landed = w.inbox.take(w.landed)
	if len(w.landed) == 0 {
		return
	}
	for i, x := range w.landed {
		w.landed[i] = nil
		x.done = true
		s.inFlight--
		w.soon = w.soon || x.result.Soon
		if err := x.result.Err; err != nil && w.opened.broken == nil {
			if !errors.Is(err, output.ErrReopen) {
				err = fmt.Errorf("%w; %w", err, output.ErrReopen)
			}
			w.opened.broken = err
		}
	}
	if s.inFlight == 0 {
		w.moved.Store(0)
	} else {
		w.moved.Store(time.Now().UnixNano())
	}
	w.advance()
}

// advance moves over the longest finished prefix.
func (w *flow) advance() {
	s := w.flights
	records, bytes := s.window.Len(), s.bytes
	for s.window.Len() > 0 {
		x := s.window.Front()
		if !x.done || x.result.Err != nil {
			break
		}
		s.pop()
		if x.part {
			if !x.idle {
				w.parted, w.latest = true, x.result.State
			}
			w.outcomes.count(x)
			s.recycle(x)
			continue
		}
		atStop, parted := w.finished == w.stop && !w.parted, w.parted
		w.finished, w.learnt, w.parted = x.end, x.learnt, false
		w.outcomes.count(x)
		switch {
		case x.result.State != nil || !w.opened.resumer:
			w.stopHere(x.result.State, false)
		case !x.broken && !x.deadly && !x.idle:
		case atStop: // the output has nothing that the state does not cover
			w.stopHere(w.state, w.keep)
		case parted && w.latest != nil: // it came with what the output has of this record
			w.stopHere(w.latest, false)
		}
		s.recycle(x)
	}
	w.care.progress(records-s.window.Len(), bytes-s.bytes)
}

// stopHere says that the cursor may stand at the end of the finished prefix, with this state, or
// with the one that it has.
func (w *flow) stopHere(state []byte, keep bool) {
	w.stop, w.state, w.keep = w.finished, state, keep
	if w.cfg.Sift.Remembers() {
		w.cfg.Sift.Settle(w.learnt)
	}
	w.passing.add(&w.counts)
	w.counts = Counts{}
}

// await waits until no more than so many chunks are in flight, something is urgent, or a commit may
// be due.
func (w *flow) await(ctx context.Context, left int) {
	patience := commitEvery
	if w.care.trials > 0 {
		patience = waitingEvery
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !w.inbox.listen(w.flights.inFlight, left, cancel) {
		return
	}
	defer w.inbox.deafen()
	<-wait.Done()
}

// forget drops what is beyond the cursor.
func (w *flow) forget() {
	w.splitter.cutting, w.parted = false, false
	w.sieve.drop()
	for _, x := range w.opened.forget() {
		x.done = true
	}
	for w.flights.window.Len() > 0 {
		if x := w.flights.pop(); x.done {
			w.flights.recycle(x)
		} // else an output that was left behind may still read it: what it calls lets go of it
	}
	w.flights.inFlight = 0
	w.outcomes.forget()
	w.due = due{}
	w.splitter.endSplit()
	w.rewind(w.committed)
	w.until.again()
	w.moved.Store(0)
}
