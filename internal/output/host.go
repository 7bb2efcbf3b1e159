// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

var (
	errStalled   = errors.New("it acks nothing")
	errNoMessage = errors.New("the server closed the connection before it took anything")
)

// A host is one server, with the chunks that it has. Its fields below the first three are guarded
// by the forwarder's lock.
type host struct {
	f      *forwarder
	name   string
	client *forward.Client

	up      bool
	stalled bool      // it has had chunks for FailoverAfter, and acked none: it gets no new ones
	trial   bool      // it stalled before this connection: it gets one chunk until it acks
	acked   time.Time // last
	since   time.Time // it is up, or was last blamed for stalling
	calls   []*pendingChunk
	wanted  bool // as last told to the client
}

func newHost(f *forwarder, name string) *host {
	h := &host{f: f, name: name}
	c := &f.cfg
	h.client = &forward.Client{
		Network: c.Network, Address: name, Dial: h.dial, Compress: c.Compress, NoAck: c.NoAck, Window: c.Window,
		GetTLS: c.GetTLS, GetLogin: c.GetLogin, NoKeepalive: c.NoKeepalive,
		AckTimeout: c.AckTimeout, DialTimeout: c.DialTimeout, MinBackoff: c.MinBackoff, MaxBackoff: c.MaxBackoff,
		Changed: h.changed,
	}
	return h
}

// dial is an attempt to connect: the breaker's probe.
func (h *host) dial(ctx context.Context) (nc net.Conn, err error) {
	defer func() {
		if v := recover(); v != nil { // a logger does not end the program
			err = fmt.Errorf("output: %s: Dial: %w", h.name, panicked(v))
		}
	}()
	h.f.b.probe()
	return h.f.cfg.Dial(ctx, h.f.cfg.Network, h.name)
}

// works says whether chunks may go there.
func (h *host) works() bool { return h.up && !h.stalled }

// room is whether it takes another chunk now.
func (h *host) room() bool {
	limit := h.f.cfg.Window
	if h.trial || h.f.doubted {
		limit = 1
	}
	return h.works() && len(h.calls) < limit
}

// changed is told by the client of its connection.
func (h *host) changed(up bool, err error) {
	f := h.f
	f.mu.Lock()
	defer f.unlock()
	if f.closed {
		return
	}
	ended := h.up && !up && err != nil
	h.up = up
	f.wakeWatcher()
	if up {
		h.wanted = false
		h.client.Connect(false)
		h.trial, h.stalled = h.trial || h.stalled, false
		h.since = time.Now()
		f.b.probe() // a breaker that another host's failure opened again
		f.dispatch()
		return
	}
	if ended {
		f.suspectLocked(h, err)
	}
	for _, p := range slices.Clone(h.calls) {
		if !p.call.Written() {
			f.take(p)
		}
	}
	if err == nil && f.b.state() == BreakerHalfOpen {
		err = errNoMessage
	}
	if err != nil {
		dead := f.dead()
		f.b.reportFailure(err, dead)
		f.b.failed(err, dead, h.client.Stats().Pause)
	}
	h.want(f.count > 0 || f.b.state() != BreakerClosed)
	f.dispatch()
}

// start gives the host a chunk.
func (h *host) start(p *pendingChunk) error {
	call, err := h.client.Start(p.chunk, func(err error) { h.done(p, err) })
	if err != nil {
		return err
	}
	p.host, p.call, p.since = h, call, time.Now()
	if p.first.IsZero() {
		p.first = p.since
	}
	h.calls = append(h.calls, p)
	if f := h.f; h.due(p).Before(f.alarm) {
		f.wakeWatcher()
	}
	return nil
}

// done is told by the client what became of a chunk.
func (h *host) done(p *pendingChunk, err error) {
	f := h.f
	f.mu.Lock()
	defer f.unlock()
	h.forget(p)
	switch {
	case err == nil:
		h.acked, h.stalled, h.trial = time.Now(), false, false
		f.b.worked()
		f.ackedLocked()
		repeated := slices.ContainsFunc(p.wrote, func(o *host) bool { return o != h })
		f.finish(p, Result{MaybeRepeated: repeated})
	case f.closed:
		f.finish(p, Result{Err: ErrClosed})
		return
	default: // it was canceled while its bytes were in use
		p.left(h)
		f.put(p)
		h.leave()
		f.b.more()
	}
	f.dispatch()
}

// forget takes a chunk off the list.
func (h *host) forget(p *pendingChunk) {
	if i := slices.Index(h.calls, p); i >= 0 {
		h.calls = slices.Delete(h.calls, i, i+1)
	}
	p.host = nil
}

// leave ends a connection that stalled, when nothing is left to wait for on it: late acks would
// mean nothing.
func (h *host) leave() {
	if h.stalled && h.up && len(h.calls) == 0 {
		h.client.Disconnect(errStalled)
	}
}

// due is when a chunk that was written there may go elsewhere.
func (h *host) due(p *pendingChunk) time.Time {
	t := p.since
	if h.acked.After(t) {
		t = h.acked
	}
	return t.Add(h.f.cfg.FailoverAfter)
}

// stalls is when the host will have acked nothing for FailoverAfter, or for another FailoverAfter;
// zero: it need not.
func (h *host) stalls() time.Time {
	if !h.up || len(h.calls) == 0 {
		return time.Time{}
	}
	t := h.due(h.calls[0])
	if u := h.since.Add(h.f.cfg.FailoverAfter); u.After(t) {
		t = u
	}
	return t
}

// blame notes that the host stalls.
func (h *host) blame(now time.Time) {
	h.stalled, h.since = true, now
	err := fmt.Errorf("output: %s: %w for %v", h.name, errStalled, h.f.cfg.FailoverAfter)
	dead := h.f.dead()
	h.f.b.reportFailure(err, dead)
	h.f.b.failed(err, dead, 0)
}

// want tells the client whether a connection is wanted. It is as soon as there is anything to send,
// to whichever host, and until there is one, or an attempt failed and nothing is left to send; but
// while the breaker is not closed it is in any case.
func (h *host) want(yes bool) {
	if !h.up && yes != h.wanted {
		h.wanted = yes
		h.client.Connect(yes)
	}
}
