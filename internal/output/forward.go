// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// ForwardConfig says where Forward servers are and how to speak with them. Hosts is all it needs.
type ForwardConfig struct {
	// Network is "tcp" if empty, or "unix".
	Network string
	// Hosts are host:port, or paths of unix sockets. Chunks are spread over them.
	Hosts []string
	// Dial makes a connection; nil: net.Dialer, which asks the DNS each time.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// GetTLS, if set, makes connections TLS, over what Dial makes; GetLogin, if set, logs in on
	// them. They are asked once for each connection.
	GetTLS   func() (*tls.Config, error)
	GetLogin func() (*forward.Login, error)
	// NoKeepalive makes a connection for each chunk.
	NoKeepalive bool
	// Compress is how entries travel: "" plain, "gzip" or "zstd".
	Compress string
	// NoAck sends without asking for acks: a chunk is delivered when it is with the kernel. What
	// the server does not read then is lost: at its end that may be all that was written before the
	// end was seen here.
	NoAck bool
	// Window is how many chunks are in flight to one host at most: 8 if 0.
	Window int
	// AckTimeout is how long a server may take for an ack: 60 s if 0. Then the connection is given
	// up.
	AckTimeout time.Duration
	// DialTimeout bounds one attempt to connect: 10 s if 0.
	DialTimeout time.Duration
	// MinBackoff and MaxBackoff are the first and the longest pause before a host is tried again:
	// 100 ms and 10 s if 0. A random part of up to half is left out.
	MinBackoff, MaxBackoff time.Duration
	// FailoverAfter is how long a chunk that was written to a host waits for its ack before it goes
	// elsewhere: 10 s if 0.
	FailoverAfter time.Duration
	Trip
}

// A forwarder spreads chunks over hosts.
//
// Lock order: forwarder, then forward.Client, then breaker. Clients and the breaker call back with
// none of theirs held.
type forwarder struct {
	cfg   ForwardConfig
	b     *breaker
	hosts []*host
	wake  chan struct{} // the alarm is earlier than watch knows; holds one
	ended chan struct{} // watch has ended
	over  chan struct{} // Close has ended

	mu      sync.Mutex
	waiting []*pendingChunk // what no host has, in order
	offered *pendingChunk   // which of them the error handler has
	count   int             // chunks that are not done
	seq     uint64
	turn    int       // of hosts
	alarm   time.Time // when watch looks again
	closed  bool
	flushes []*flushing
	doubted bool     // a server may be refusing a chunk, see doubt
	rounds  int      // how often it was not the chunk, since the last ack
	err     error    // of Close
	notes   []func() // to be called as soon as mu is free
}

// pendingChunk is a chunk that is not done.
type pendingChunk struct {
	seq   uint64
	chunk *forward.Chunk
	done  func(Result)
	round uint64 // of the breaker, in which it was offered last

	// While a host has it:
	host  *host
	call  *forward.Call
	since time.Time

	wrote []*host // which may have got it without acking it
	doubt
}

// left notes that a chunk was taken back from a host, which may have got it.
func (p *pendingChunk) left(h *host) {
	if p.call.Written() && !slices.Contains(p.wrote, h) {
		p.wrote = append(p.wrote, h)
	}
}

// NewForward returns an output that sends to Forward servers. Each chunk goes to the next host that
// works and has room in its window; the chunks that one host gets keep their order.
//
// A chunk that was not yet written to a host whose connection fails moves to another one at once.
// One that was written belongs to that host, which gets it again on a fresh connection; when the
// host has acked nothing for FailoverAfter, the chunk moves too, or goes to the error handler, and
// its Result says MaybeRepeated. A host that acks nothing for so long gets no new chunks, is left
// when its chunks have moved, and must ack one before it gets two.
//
// The breaker opens after Trip.Failures failures (attempts, connections, FailoverAfter without an
// ack) if no host works; half-open, one chunk is in flight.
func NewForward(c *ForwardConfig) Output {
	f := &forwarder{cfg: *c, wake: make(chan struct{}, 1), ended: make(chan struct{}), over: make(chan struct{})}
	or := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	or(&f.cfg.FailoverAfter, 10*time.Second)
	or(&f.cfg.AckTimeout, time.Minute)
	if f.cfg.Network == "" {
		f.cfg.Network = "tcp"
	}
	if f.cfg.Window <= 0 {
		f.cfg.Window = 8
	}
	if f.cfg.Dial == nil {
		f.cfg.Dial = new(net.Dialer).DialContext
	}
	f.b = newBreaker(&f.cfg.Trip, f.next, f.back)
	if how := f.cfg.Compress; how != "" && how != "gzip" && how != "zstd" {
		f.b.report(fmt.Errorf("output: no compression %q: chunks are sent plain", how))
		f.cfg.Compress = ""
	}
	for _, name := range f.cfg.Hosts {
		f.hosts = append(f.hosts, newHost(f, name))
	}
	go f.watch()
	return f
}

// unlock gives up mu, and calls the functions that report what happened under it.
func (f *forwarder) unlock() {
	notes := f.notes
	f.notes = nil
	f.mu.Unlock()
	for _, n := range notes {
		n()
	}
}

func (f *forwarder) Submit(c *forward.Chunk, done func(Result)) {
	f.mu.Lock()
	defer f.unlock()
	f.seq++
	f.count++
	p := &pendingChunk{seq: f.seq, chunk: c, done: done}
	if f.closed {
		f.finish(p, Result{Err: ErrClosed})
		return
	}
	f.waiting = append(f.waiting, p)
	f.dispatch()
	f.b.more()
}

// finish has done called.
func (f *forwarder) finish(p *pendingChunk, r Result) {
	f.count--
	f.notes = append(f.notes, func() { p.done(r) })
	f.flushes = slices.DeleteFunc(f.flushes, func(w *flushing) bool {
		if p.seq <= w.seq {
			w.left--
		}
		if w.left == 0 {
			f.notes = append(f.notes, func() { w.end(nil) })
		}
		return w.left == 0
	})
}

// Waiting implements Waiter.
func (f *forwarder) Waiting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == 0 || len(f.waiting) > 0 {
		return false
	}
	for _, h := range f.hosts {
		if slices.ContainsFunc(h.calls, func(p *pendingChunk) bool { return !p.call.Waiting() }) {
			return false
		}
	}
	return true
}

// put puts a chunk back where it stood.
func (f *forwarder) put(p *pendingChunk) {
	i, _ := slices.BinarySearchFunc(f.waiting, p,
		func(a, b *pendingChunk) int { return int(int64(a.seq) - int64(b.seq)) })
	f.waiting = slices.Insert(f.waiting, i, p)
}

// take takes a chunk back from its host; false: its bytes are in use, and the host will let go of
// it soon.
func (f *forwarder) take(p *pendingChunk) bool {
	h := p.host
	if !p.call.Cancel() {
		return false
	}
	p.left(h)
	h.forget(p)
	f.put(p)
	return true
}

// dead says whether no host works.
func (f *forwarder) dead() bool { return !slices.ContainsFunc(f.hosts, (*host).works) }

// dispatch gives hosts what is waiting.
func (f *forwarder) dispatch() {
	if f.closed {
		return
	}
	if !f.dead() {
		f.move(time.Now())
	}
	if f.onlyLocked() {
		f.trustLocked()
	}
	for i := 0; i < len(f.waiting) && f.admits(); {
		p := f.waiting[i]
		if p == f.offered || p.aside {
			i++
			continue
		}
		h := f.pick(p)
		if h == nil {
			break
		}
		if err := h.start(p); err != nil { // not unless the client is closed
			f.b.report(err)
			break
		}
		f.waiting = slices.Delete(f.waiting, i, i+1)
	}
	if f.count > 0 {
		for _, h := range f.hosts {
			h.want(true)
		}
	}
}

// admits says whether the breaker lets another chunk through: when half-open, one.
func (f *forwarder) admits() bool {
	switch f.b.state() {
	case BreakerClosed:
		return true
	case BreakerHalfOpen:
		return !slices.ContainsFunc(f.hosts, func(h *host) bool { return h.up && len(h.calls) > 0 })
	}
	return false
}

// pick returns the host whose turn it is; one that may have the chunk already is better than any
// other.
func (f *forwarder) pick(p *pendingChunk) *host {
	for _, h := range p.wrote {
		if h.room() && !f.doubted { // then another one might take it
			return h
		}
	}
	for range f.hosts {
		h := f.hosts[f.turn%len(f.hosts)]
		f.turn++
		if h.room() {
			return h
		}
	}
	return nil
}

// watch looks for hosts that stall.
func (f *forwarder) watch() {
	defer close(f.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return
		}
		now := time.Now()
		f.alarm = f.tick(now)
		timer.Reset(f.alarm.Sub(now))
		f.unlock()
		select {
		case <-timer.C:
		case <-f.wake:
		}
	}
}

// wakeWatcher wakes watch up.
func (f *forwarder) wakeWatcher() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// tick blames hosts that stall, and moves their chunks. It returns when to come again.
func (f *forwarder) tick(now time.Time) time.Time {
	again := now.Add(time.Hour)
	due := false
	for _, h := range f.hosts {
		if t := h.stalls(); !t.IsZero() {
			if !t.After(now) {
				h.blame(now)
				t = h.stalls()
			}
			again = earlier(again, t)
		}
		if h.works() {
			continue
		}
		for _, p := range h.calls {
			if t := h.due(p); t.After(now) {
				again = earlier(again, t)
			} else {
				due = true
			}
		}
	}
	if due {
		f.dispatch()
		f.b.more()
	}
	return again
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// move takes from hosts that do not work what has been there for FailoverAfter.
func (f *forwarder) move(now time.Time) {
	for _, h := range f.hosts {
		if h.works() || len(h.calls) == 0 {
			continue
		}
		for _, p := range slices.Clone(h.calls) {
			if !h.due(p).After(now) {
				f.take(p)
			}
		}
		h.leave()
	}
}

// next claims a chunk for the error handler.
func (f *forwarder) next(round uint64) *forward.Chunk {
	f.mu.Lock()
	defer f.unlock()
	if f.closed || f.b.state() != BreakerOpen {
		return nil
	}
	f.move(time.Now())
	for _, p := range f.waiting {
		if p.round < round {
			f.offered, p.round = p, round
			return p.chunk
		}
	}
	return nil
}

// back is what the error handler said.
func (f *forwarder) back(_ *forward.Chunk, err error) {
	f.mu.Lock()
	defer f.unlock()
	p := f.offered
	f.offered = nil
	if err == nil {
		f.waiting = slices.DeleteFunc(f.waiting, func(q *pendingChunk) bool { return q == p })
		f.finish(p, Result{HandedOver: true, MaybeRepeated: len(p.wrote) > 0})
	}
	f.dispatch()
}

func (f *forwarder) Close(ctx context.Context) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		select {
		case <-f.over:
			return f.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.closed = true
	f.abandon()
	f.unlock()
	f.wakeWatcher()
	errs := make([]error, len(f.hosts)+1)
	var wg sync.WaitGroup
	for i, h := range f.hosts {
		wg.Go(func() { errs[i] = h.client.CloseContext(ctx) })
	}
	errs[len(f.hosts)] = f.b.close(ctx)
	wg.Wait()
	<-f.ended
	f.mu.Lock()
	f.offered = nil // if the handler has not returned, it has a copy
	f.abandon()
	f.err = errors.Join(errs...)
	f.unlock()
	close(f.over)
	return f.err
}

// abandon gives up what is waiting, except what the error handler has.
func (f *forwarder) abandon() {
	f.waiting = slices.DeleteFunc(f.waiting, func(p *pendingChunk) bool {
		if p == f.offered {
			return false
		}
		f.finish(p, Result{Err: ErrClosed})
		return true
	})
}
