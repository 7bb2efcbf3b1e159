// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync"

	"github.com/spillwaylog/spillway/forward/internal/budget"
)

// roster is the listeners and connections of a server.
type roster struct {
	s         *shared
	mu        sync.Mutex // after it may come those of a budget
	listeners map[interface{ Close() error }]struct{}
	conns     map[*remote]struct{}
	peers     map[string]*budget.Peer // what the connections of each hold
	stopped   bool                    // what there is was cut
	idle      chan struct{}           // closed when down and no connection is left
	ending    map[*Endpoint]*ending   // those that have no more connections than they have
	ends      chan struct{}           // a connection has ended; holds one
}

// ending is an endpoint that takes no new connection.
type ending struct {
	left int           // connections
	done chan struct{} // closed when none is left
}

func (w *roster) begin(s *shared) {
	w.s = s
	w.listeners = make(map[interface{ Close() error }]struct{})
	w.conns = make(map[*remote]struct{})
	w.peers = make(map[string]*budget.Peer)
	w.ending = make(map[*Endpoint]*ending)
	w.idle = make(chan struct{})
	w.ends = make(chan struct{}, 1)
}

// count is how many connections there are that came by an endpoint; nil: by any.
func (w *roster) count(e *Endpoint) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e == nil {
		return len(w.conns)
	}
	for c := range w.conns {
		if c.ep == e {
			n++
		}
	}
	return n
}

// all returns the connections of which a function says so.
func (w *roster) all(is func(*remote) bool) (conns []*remote) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		if is(c) {
			conns = append(conns, c)
		}
	}
	return conns
}

// listen takes a listener in; false: too late, and it is closed.
func (w *roster) listen(l interface{ Close() error }) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s.down.Load() {
		_ = l.Close() // nothing was served
		return false
	}
	w.listeners[l] = struct{}{}
	return true
}

func (w *roster) unlisten(l interface{ Close() error }) {
	w.mu.Lock()
	delete(w.listeners, l)
	w.mu.Unlock()
	_ = l.Close() // most often it was closed by drain
}

// join is what a connection of a peer shares with its others, until leaveLocked.
func (w *roster) join(peer string) *budget.Peer {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.peers[peer]
	if p == nil {
		p = new(budget.Peer)
		w.peers[peer] = p
	}
	p.Conns++
	return p
}

func (w *roster) leaveLocked(c *remote) {
	if p := c.hold.Peer(); p != nil {
		if p.Conns--; p.Conns == 0 {
			delete(w.peers, c.sender.Peer)
		}
	}
}

// enter takes a connection in; false: too late.
func (w *roster) enter(c *remote) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s.down.Load() || w.ending[c.ep] != nil {
		w.leaveLocked(c)
		return false
	}
	w.conns[c] = struct{}{}
	w.s.running.Add(1)
	return true
}

// leave takes it out.
func (w *roster) leave(c *remote) {
	w.mu.Lock()
	delete(w.conns, c)
	w.leaveLocked(c)
	if e := w.ending[c.ep]; e != nil {
		if e.left--; e.left == 0 {
			close(e.done)
		}
	}
	if w.s.down.Load() && len(w.conns) == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
	w.mu.Unlock()
	select {
	case w.ends <- struct{}{}:
	default:
	}
}

// drain stops listening and reading, and returns what is closed when all connections have ended.
func (w *roster) drain() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.s.down.Swap(true)
	done := w.idle
	if done == nil || len(w.conns) == 0 {
		if done == nil {
			done = make(chan struct{})
		}
		w.idle = nil
		close(done)
	}
	if first {
		for l := range w.listeners {
			_ = l.Close() // Serve returns, and has no use for the error
		}
		for c := range w.conns {
			c.interrupt()
		}
	}
	return done
}

// abort ends everything at once.
func (w *roster) abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.stopped = true
	close(w.s.stop)
	w.s.cancel()
	for c := range w.conns {
		c.abort()
	}
	w.s.mem.Close()
}

// drainEndpoint stops reading from the connections of an endpoint, lets none in any more, and
// returns what is closed when all have ended.
func (w *roster) drainEndpoint(ep *Endpoint) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.ending[ep]; e != nil {
		return e.done
	}
	e := &ending{done: make(chan struct{})}
	w.ending[ep] = e
	for c := range w.conns {
		if c.ep == ep {
			e.left++
			c.interrupt()
		}
	}
	if e.left == 0 {
		close(e.done)
	}
	return e.done
}

// abortEndpoint cuts the connections of an endpoint.
func (w *roster) abortEndpoint(ep *Endpoint) {
	for _, c := range w.all(func(c *remote) bool { return c.ep == ep }) {
		c.abort()
	}
}

// forget says that an endpoint will never be served again.
func (w *roster) forget(ep *Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ending, ep)
}
