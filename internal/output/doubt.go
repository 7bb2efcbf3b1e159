// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"slices"
	"time"
)

// A Forward server has no way to say that it does not want a chunk: it ends the connection, or acks
// nothing. So would one that fails, and then every chunk has to wait. What tells the two apart is
// whether other chunks are acked.
//
//	       ends first on doubtEnds connections,                  another chunk is acked
//	       not acked for AckTimeout, doubtLeast at least
//	sent ───────────────────────────────────────► set aside ◄────────────────────────► sent again
//	                                                  │                                    │
//	                                                  │ maxDoubt are: it is               │ ends first after
//	                                                  │ not the chunks                     │ doubtAcks of others
//	                                                  ▼                                    ▼
//	                                               sent, all in their order             refused
//
// While there is doubt each host has one chunk at a time, so at most doubtAcks chunks pass one that
// is acked in the end.
const (
	doubtEnds = 3  // connections; twice as many after each time that no chunk was acked
	doubtAcks = 3  // of other chunks, each between two tries
	maxDoubt  = 4  // chunks set aside at once
	maxEnds   = 48 // what doubtEnds grows to

	// doubtLeast is how long a chunk waits for its ack at least before others pass it: a network
	// that is bad for some seconds must not change the order.
	doubtLeast = 30 * time.Second
)

// doubt is what is known of a chunk whose ack does not come.
type doubt struct {
	first time.Time // when it was given to a host first
	ends  int       // connections that ended with it as the first without an ack
	aside bool      // it waits until another chunk is acked, or is not either
	acks  int       // of others while it was set aside
}

// suspectLocked notes that a connection ended, and looks whether the first chunk without an ack is
// to blame.
func (f *forwarder) suspectLocked(h *host, err error) {
	if f.cfg.NoAck || len(h.calls) == 0 || !h.calls[0].call.Written() {
		return
	}
	p := h.calls[0]
	p.ends++
	limit := min(doubtEnds<<f.rounds, maxEnds)
	sure := p.ends >= limit && time.Since(p.first) >= max(f.cfg.AckTimeout, doubtLeast)
	switch {
	case sure && p.acks >= doubtAcks:
		if f.take(p) {
			f.waiting = slices.DeleteFunc(f.waiting, func(q *pendingChunk) bool { return p == q })
			f.finish(p, Result{MaybeRepeated: true, Rejected: []Rejected{{Entry: AllEntries, Err: fmt.Errorf(
				"not acked on %d connections, while other chunks were acked; it may have been stored: %w", p.ends,
				err)}}})
			f.settleLocked()
		}
	case sure, f.doubted && f.asideLocked() > 0 && !p.aside:
		switch n := f.asideLocked(); {
		case n == 0 && f.count < 2: // no other can be acked
			return
		case n == maxDoubt:
			f.rounds = min(f.rounds+1, 8)
			f.trustLocked()
			return
		}
		f.doubted = true
		for _, q := range slices.Clone(h.calls) {
			f.take(q)
		}
		p.aside = p.host == nil
	}
}

// asideLocked is how many chunks are set aside.
func (f *forwarder) asideLocked() (n int) {
	for _, p := range f.waiting {
		if p.aside {
			n++
		}
	}
	return n
}

// trustLocked has all chunks sent as they came.
func (f *forwarder) trustLocked() {
	for _, p := range f.waiting {
		p.aside, p.acks = false, 0
		p.ends = 0
	}
	f.settleLocked()
}

// onlyLocked says that nothing is left but what is set aside.
func (f *forwarder) onlyLocked() bool { return f.doubted && f.asideLocked() == f.count }

// ackedLocked notes an ack: the server works, and what is set aside is tried again.
func (f *forwarder) ackedLocked() {
	if !f.doubted {
		return
	}
	f.rounds = 0
	for _, p := range f.waiting {
		if p.aside {
			p.aside = false
			p.acks++
		}
	}
	f.settleLocked()
}

// settleLocked ends the doubt when no chunk is left that gave reason for it.
func (f *forwarder) settleLocked() {
	suspect := func(p *pendingChunk) bool { return p.aside || p.acks > 0 }
	f.doubted = slices.ContainsFunc(f.waiting, suspect) ||
		slices.ContainsFunc(f.hosts, func(h *host) bool { return slices.ContainsFunc(h.calls, suspect) })
}
