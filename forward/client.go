// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// ErrClientClosed is what Send returns after Close.
var ErrClientClosed = errors.New("forward: client closed")

// A Client sends chunks to one server and waits for their acks. Its fields are set before the first Send and not changed after; Address is all it needs.
//
// How it works: calls of Send stand in a queue, in the order they came. One goroutine dials, and writes the first Window of them; another one,
// for each connection, reads acks, which come in the order of the chunks and take calls off the front. Whatever goes wrong with a connection (docs/forward.md
// rule 28: also an ack that is missing or another one), it is closed and never used again; after a pause, which grows while nothing is acked, the
// calls that are still in the queue are sent again, in the same order and with the same bytes, on a fresh one.
type Client struct {
	// Network is "tcp" if empty, or "unix".
	Network string
	// Address is host:port, or the path of a unix socket.
	Address string
	// Dial makes a connection; nil: one to Address.
	Dial func(ctx context.Context) (net.Conn, error)
	// Compress is how entries travel: "" plain, "gzip" or "zstd".
	Compress string
	// NoAck sends without asking for acks: Send returns when the chunk is with the kernel. What the server does not read then is lost.
	NoAck bool
	// Window is the most chunks in flight: 16 if 0.
	Window int
	// AckTimeout is how long the server may take for an ack: 60 s if 0. Then the connection is given up.
	AckTimeout time.Duration
	// DialTimeout bounds one attempt to connect: 10 s if 0.
	DialTimeout time.Duration
	// MinBackoff and MaxBackoff are the first and the longest pause before a fresh connection: 100 ms and 10 s if 0. A random part of up to half is left out.
	MinBackoff, MaxBackoff time.Duration
	// Report is told why connections are given up. It must not block, nor call the Client. Nil: Stats counts them.
	Report func(error)

	deflater deflater

	once  sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	wake  chan struct{} // there may be something to do for run; holds one
	ended chan struct{} // run has ended

	mu     sync.Mutex
	wrote  sync.Cond // a write has ended
	queue  []*call   // not acked, oldest first
	sent   int       // so many of them are written on link, or being written
	link   *link
	closed bool
	last   error // why the last connection was given up
	stats  ClientStats
}

// ClientStats are counts since the client was made, and what is so now.
type ClientStats struct {
	Connects uint64 // connections made
	Failures uint64 // connections given up, attempts included
	Sent     uint64 // chunks written, repeats included
	Resent   uint64 // chunks written again
	Acked    uint64 // chunks acked
	Queued   int    // calls of Send that wait now
	InFlight int    // of which are written
}

// call is one call of Send.
type call struct {
	head, entries, tail []byte
	id                  []byte
	done                chan error
	tries               int
	writing             bool // its bytes are in use
	acked               bool // while it was being written
	left                bool // the caller went away: not to be sent again
}

// init resolves the fields and starts the client.
func (c *Client) init() {
	c.once.Do(func() {
		or := func(d *time.Duration, v time.Duration) {
			if *d <= 0 {
				*d = v
			}
		}
		or(&c.AckTimeout, time.Minute)
		or(&c.DialTimeout, 10*time.Second)
		or(&c.MinBackoff, 100*time.Millisecond)
		or(&c.MaxBackoff, 10*time.Second)
		if c.Network == "" {
			c.Network = "tcp"
		}
		if c.Window <= 0 {
			c.Window = 16
		}
		if c.Dial == nil {
			var d net.Dialer
			c.Dial = func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, c.Network, c.Address) }
		}
		c.deflater.how = c.Compress
		c.wrote.L = &c.mu
		c.ctx, c.stop = context.WithCancel(context.Background())
		c.wake = make(chan struct{}, 1)
		c.ended = make(chan struct{})
		go c.run()
	})
}

// Send sends a chunk and returns nil when the server has acked it. It may be called by many goroutines: their chunks are in flight together. It
// tries until ctx is done, on fresh connections; its error then wraps that of ctx and names what went wrong last. The chunk's bytes are
// not used after it returned. After an error the chunk may have arrived all the same: sending it again with the same id lets the server notice.
//
// A chunk without an id gets one for this call, marked as ours. Peer and Conn do not travel.
func (c *Client) Send(ctx context.Context, ch *Chunk) error {
	c.init()
	k := &call{done: make(chan error, 1)}
	out := *ch
	switch {
	case c.NoAck:
		out.ID, out.Own = nil, false
	case out.ID == nil:
		out.ID, out.Own = NewID(), true
	}
	var err error
	var free func()
	if k.entries, free, err = c.deflater.deflate(ch.Entries); err != nil {
		return fmt.Errorf("forward: %w", err)
	}
	defer free()
	k.id = out.ID
	k.head = appendHead(nil, out.Tag, len(k.entries))
	k.tail = out.appendTail(nil, c.Compress, nil)

	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClientClosed
	}
	c.queue = append(c.queue, k)
	c.mu.Unlock()
	c.poke()
	select {
	case err := <-k.done:
		return err
	case <-ctx.Done():
		return c.leave(ctx, k)
	}
}

// leave takes a call back whose caller waits no longer.
func (c *Client) leave(ctx context.Context, k *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.left = true
	if k.writing && c.link != nil { // the server reads nothing: the message cannot be finished
		c.link.interrupt()
	}
	for k.writing {
		c.wrote.Wait()
	}
	select {
	case err := <-k.done: // in the last moment
		return err
	default:
	}
	if i := slices.Index(c.queue, k); i >= c.sent {
		c.queue = slices.Delete(c.queue, i, i+1)
	} // else it stays until its ack comes, or the connection goes
	c.poke()
	err := fmt.Errorf("forward: %s: not acked: %w", c.Address, ctx.Err())
	if c.last != nil {
		err = fmt.Errorf("%w; last: %w", err, c.last)
	}
	return err
}

// Close gives up what is in flight: calls of Send return ErrClientClosed. It may be called more than once.
func (c *Client) Close() error {
	c.init()
	c.mu.Lock()
	c.closed = true
	if c.link != nil {
		c.link.interrupt()
	}
	c.mu.Unlock()
	c.stop()
	<-c.ended
	return nil
}

// Stats returns the counts.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.stats
	st.Queued, st.InFlight = len(c.queue), c.sent
	return st
}

// poke lets run look again.
func (c *Client) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run is the client's goroutine: it dials, writes, and gives up connections.
func (c *Client) run() {
	defer close(c.ended)
	pause := time.Duration(0)
	for c.ctx.Err() == nil {
		c.mu.Lock()
		l := c.link
		switch {
		case l != nil && l.err == nil && c.sent > 0 && time.Since(l.progress) > c.AckTimeout:
			l.err = fmt.Errorf("no ack in %v", c.AckTimeout)
			fallthrough
		case l != nil && l.err != nil:
			if l.acked {
				pause = 0
			}
			pause = c.next(pause)
			c.giveUp(l)
			c.mu.Unlock()
			l.wait()
			c.sleep(pause)
			continue
		case l != nil && c.sent < min(len(c.queue), c.Window):
			c.write(l) // unlocks meanwhile
			c.mu.Unlock()
			continue
		}
		waiting := len(c.queue) > 0
		var limit <-chan time.Time
		if l != nil && c.sent > 0 {
			limit = time.After(time.Until(l.progress.Add(c.AckTimeout)) + time.Millisecond)
		}
		c.mu.Unlock()
		if l == nil && waiting {
			if err := c.dial(); err != nil {
				pause = c.next(pause)
				c.sleep(pause)
			}
			continue
		}
		select {
		case <-c.wake:
		case <-limit:
		case <-c.ctx.Done():
		}
	}
	c.mu.Lock()
	l := c.link
	if l != nil {
		l.err = ErrClientClosed
		c.giveUp(l)
	}
	for _, k := range c.queue {
		k.done <- ErrClientClosed
	}
	c.queue = nil
	c.mu.Unlock()
	if l != nil {
		l.wait()
	}
}

// next is the pause after the one that was.
func (c *Client) next(pause time.Duration) time.Duration {
	return min(max(2*pause, c.MinBackoff), c.MaxBackoff)
}

// sleep pauses, at most as long as anybody waits.
func (c *Client) sleep(pause time.Duration) {
	pause -= rand.N(pause/2 + 1)
	t := time.NewTimer(pause)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-c.ctx.Done():
			return
		case <-c.wake:
		}
		c.mu.Lock()
		none := len(c.queue) == 0
		c.mu.Unlock()
		if none {
			return
		}
	}
}

// dial makes a fresh connection.
func (c *Client) dial() error {
	ctx, cancel := context.WithTimeout(c.ctx, c.DialTimeout)
	defer cancel()
	nc, err := c.Dial(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed(err) // names network and address
		return err
	}
	c.stats.Connects++
	c.link = newLink(c, nc)
	if c.closed {
		c.link.interrupt()
	}
	return nil
}

// failed notes why a connection was given up. With mu held.
func (c *Client) failed(err error) {
	if c.closed {
		return
	}
	c.stats.Failures++
	c.last = err
	if c.Report != nil {
		c.Report(err)
	}
}

// giveUp closes a connection, for ever; what was not acked on it is to be sent again. With mu held.
func (c *Client) giveUp(l *link) {
	if c.sent > 0 || !errors.Is(l.err, errIdleEnd) {
		c.failed(fmt.Errorf("forward: %s: %w", c.Address, l.err))
	}
	_ = l.nc.Close() // it is broken already
	c.link = nil
	c.sent = 0
	c.queue = slices.DeleteFunc(c.queue, func(k *call) bool { return k.left })
}

// smallEntries are copied, so that many small chunks leave in one piece.
const smallEntries = 8 << 10

// write writes what fits into the window. With mu held, which it gives up while it writes.
func (c *Client) write(l *link) {
	batch := slices.Clone(c.queue[c.sent:min(len(c.queue), c.Window)])
	if c.sent == 0 {
		l.progress = time.Now()
	}
	c.sent += len(batch)
	for _, k := range batch {
		k.writing = true
		c.stats.Sent++
		if k.tries++; k.tries > 1 {
			c.stats.Resent++
		}
	}
	c.mu.Unlock()
	var out net.Buffers
	var small []byte
	cut := func() {
		if len(small) > 0 {
			out = append(out, small)
			small = nil
		}
	}
	for _, k := range batch {
		small = append(small, k.head...)
		if len(k.entries) <= smallEntries {
			small = append(small, k.entries...)
		} else {
			cut()
			out = append(out, k.entries)
		}
		small = append(small, k.tail...)
	}
	cut()
	err := l.write(out, c.AckTimeout)
	c.mu.Lock()
	for _, k := range batch {
		k.writing = false
		if k.acked {
			k.done <- nil
		}
	}
	if err == nil && c.NoAck && c.link == l {
		for _, k := range batch {
			k.done <- nil
			c.stats.Acked++
		}
		c.queue = slices.Delete(c.queue, 0, len(batch))
		c.sent = 0
	}
	if err != nil && l.err == nil {
		l.err = err
	}
	c.wrote.Broadcast()
}

// take takes the ack that came on a link.
func (c *Client) take(l *link, id []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l || l.err != nil {
		return errLate
	}
	if c.sent == 0 {
		return fmt.Errorf("an ack for %q, and nothing to be acked", shorten(id))
	}
	k := c.queue[0]
	if string(k.id) != string(id) {
		return fmt.Errorf("an ack for %q in place of %q", shorten(id), shorten(k.id))
	}
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.sent--
	c.stats.Acked++
	l.progress, l.acked = time.Now(), true
	if k.writing {
		k.acked = true
	} else {
		k.done <- nil
	}
	c.poke()
	return nil
}
