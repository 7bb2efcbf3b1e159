// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// ErrClientClosed is what Send and Start return after Close.
var ErrClientClosed = errors.New("forward: client closed")

// A Client sends chunks to one server and waits for their acks. Its fields are set before the first
// call and not changed after; Address is all it needs.
//
// How it works: chunks stand in a queue, in the order of the calls of Start and Send. One goroutine
// dials, and writes the first Window of them; another one, for each connection, reads acks, which
// come in the order of the chunks and take them off the front. Whatever goes wrong with a
// connection (docs/forward.md rule 28: also an ack that is missing or another one), it is closed
// and never used again; after a pause, which grows while nothing is acked, the chunks that are
// still in the queue are sent again, in the same order and with the same bytes, on a fresh one. The
// second goroutine reads also while no ack is due. So it sees when the server closes an idle
// connection, and the next chunk goes out on a fresh one.
type Client struct {
	// Network is "tcp" if empty, or "unix".
	Network string
	// Address is host:port, or the path of a unix socket.
	Address string
	// Dial makes a connection; nil: one to Address, whose name is looked up each time. One attempt
	// runs at a time, also when it takes longer than its ctx.
	Dial func(ctx context.Context) (net.Conn, error)
	// TLS makes every connection one of TLS 1.2 or newer; nil: they are plain. Its ServerName, if
	// empty, is that of Address.
	TLS *tls.Config
	// GetTLS, if it is set, is asked for TLS before each connection, so that certificates can
	// change. Its error is that of the attempt.
	GetTLS func() (*tls.Config, error)
	// Login is the Forward handshake that begins every connection (docs/forward.md rules 31 to 40);
	// nil: there is none.
	Login *Login
	// GetLogin, if it is set, is asked for Login before each connection, so that secrets can
	// change. Its error is that of the attempt.
	GetLogin func() (*Login, error)
	// NoKeepalive makes a fresh connection for each chunk (docs/forward.md rule 40). So does a
	// server that asks for that in the handshake.
	NoKeepalive bool
	// Compress is how entries travel: "" plain, "gzip" or "zstd".
	Compress string
	// NoAck sends without asking for acks: a chunk is done when it is with the kernel. What the
	// server does not read then is lost: it may be all that was written between its end and the
	// moment when that is seen here. With TLS 1.3 that is so, too, where a server refuses our
	// certificate.
	NoAck bool
	// Window is how many chunks are in flight at most: 16 if 0.
	Window int
	// AckTimeout is how long the server may take for an ack, from when the chunk was written or
	// from the ack before it, and how long a write may take without one: 60 s if 0. Then the
	// connection is given up.
	AckTimeout time.Duration
	// DialTimeout bounds one attempt to connect, handshakes included: 10 s if 0.
	DialTimeout time.Duration
	// MinBackoff and MaxBackoff are the first and the longest pause before a fresh connection: 100
	// ms and 10 s if 0. A random part of up to half is left out.
	MinBackoff, MaxBackoff time.Duration
	// Report is told why connections are given up. It must not block. Nil: Stats counts them.
	Report func(error)
	// Changed is told that there is a connection (true, nil), that an attempt or a connection
	// failed (false, why), or that the server closed one on which nothing was to be acked (false,
	// nil). It must not block, but may call Start, Connect, Disconnect, Stats and Call.Cancel; not
	// Send and Close, which wait for the goroutine that it is called on: that is the one that
	// writes, so what it starts leaves together.
	Changed func(up bool, err error)

	deflater wire.Deflater

	once  sync.Once
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{} // run has ended
	callQueue
}

// ClientStats are counts since the client was made, and what is so now.
type ClientStats struct {
	Connects uint64 // connections made
	Failures uint64 // connections given up, attempts included
	Sent     uint64 // chunks written, repeats included
	Resent   uint64 // chunks written again
	Acked    uint64 // chunks acked
	Queued   int    // chunks that wait now
	InFlight int    // of which are written
	// Pause is how long it is until the next attempt to connect; 0 if there is a connection, or if
	// the attempt is due.
	Pause time.Duration
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
		c.deflater.How = c.Compress
		c.ctx, c.stop = context.WithCancel(context.Background())
		c.wake = make(chan struct{}, 1)
		c.ended = make(chan struct{})
		go c.run()
	})
}

// Send sends a chunk and returns nil when the server has acked it. It may be called by many
// goroutines: their chunks are in flight together. It tries until ctx is done, on fresh
// connections; its error then wraps that of ctx and names what went wrong last. The chunk's bytes
// are not used after it returned. After an error the chunk may have arrived all the same: sending
// it again with the same id lets the server notice.
//
// A chunk without an id gets one for this call, marked as ours.
func (c *Client) Send(ctx context.Context, ch *Chunk) error {
	result := make(chan error, 1)
	k, err := c.newCall(ch, func(err error) { result <- err })
	if err != nil {
		return err
	}
	if err := k.prepare(); err != nil { // here, so that many senders compress at the same time
		return err
	}
	if err := c.enqueue(k); err != nil {
		return err
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	if !k.Cancel() {
		if err := <-result; !errors.Is(err, ErrCanceled) {
			return err // in the last moment
		}
	}
	err = fmt.Errorf("forward: %s: not acked: %w", c.Address, ctx.Err())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		err = fmt.Errorf("%w; last: %w", err, c.last)
	}
	return err
}

// Start is Send that does not wait: done is called, once, with nil when the server has acked the
// chunk, or with ErrClientClosed or ErrCanceled. Chunks are written in the order of the calls. The
// chunk's bytes are in use until done is called, or Cancel returns true. done is called on a
// goroutine of the client or that of Close, never within Start or Cancel, with no lock held; it
// must not block. After an error of Start it is not called.
func (c *Client) Start(ch *Chunk, done func(error)) (*Call, error) {
	k, err := c.newCall(ch, done)
	if err != nil {
		return nil, err
	}
	if c.Compress == "" { // else it takes time
		if err := k.prepare(); err != nil {
			return nil, err
		}
	}
	return k, c.enqueue(k)
}

// Connect says whether a connection is wanted even when nothing is to be sent. Unwanted ones are
// not closed.
func (c *Client) Connect(want bool) {
	c.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted = want; want {
		c.wakeRunner()
	}
}

// Disconnect gives up the connection, if there is one, as if it had failed with err.
func (c *Client) Disconnect(err error) {
	c.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.link; l != nil && l.err == nil {
		l.err = err
		l.interruptLocked()
		c.wakeRunner()
	}
}

// Close gives up what is in flight: it ends with ErrClientClosed. It may be called more than once.
func (c *Client) Close() error { return c.CloseContext(context.Background()) }

// CloseContext is Close that returns by ctx. Its error then names what could not be ended: a Dial
// or a connection that does not react to its caller. A chunk that such a connection holds is not
// done before it lets go.
func (c *Client) CloseContext(ctx context.Context) error {
	c.init()
	c.mu.Lock()
	c.closed = true
	if c.link != nil {
		c.link.interruptLocked()
	}
	c.dropLocked()
	c.unlock()
	c.stop()
	select {
	case <-c.ended:
		return nil
	default:
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("forward: %s: left behind: %s: %w", c.Address, c.doing, ctx.Err())
}

// Stats returns the counts.
func (c *Client) Stats() ClientStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := c.stats
	st.Queued, st.InFlight = len(c.calls), c.sent
	if c.link == nil && !c.notBefore.IsZero() {
		st.Pause = max(time.Until(c.notBefore), 0)
	}
	return st
}

// newCall checks a chunk and gives it an id.
func (c *Client) newCall(ch *Chunk, done func(error)) (*Call, error) {
	c.init()
	if err := c.deflater.Check(); err != nil {
		return nil, fmt.Errorf("forward: %w", err)
	}
	k := &Call{q: &c.callQueue, deflater: &c.deflater, chunk: *ch, done: done}
	switch {
	case c.NoAck:
		k.chunk.ID, k.chunk.UniqueID = nil, false
	case ch.ID == nil:
		k.chunk.ID, k.chunk.UniqueID = NewID(), true
		k.id = k.chunk.ID
	default:
		k.id = slices.Clone(ch.ID)
	}
	return k, nil
}
