// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
)

// remote is the other end of a connection of a Server, as whatever is concerned with it may know
// it: its reader, its acker, the watcher, the server. All of them may end it.
type remote struct {
	s      *shared
	ep     *Endpoint
	nc     net.Conn
	sock   net.Conn        // under TLS; else nc
	tls    *tls.Conn       // nc, if it is one
	under  *socket         // what tls reads from
	raw    syscall.RawConn // nil: read through nc
	sender *Sender
	ctx    context.Context // of its handlers, with the sender
	count  *counters
	proof  *proof // nil: there was no handshake, or it is not over; by the reader while it is early

	hold budget.Holder // what it holds of the memory
	pace budget.Pace   // how its peer goes on

	early    atomic.Bool // in its login, see admission.go; by the reader
	acked    atomic.Bool // an ack was written, or why there will be none; by whatever writes them
	cut      atomic.Bool // read no more; by whatever wants that
	abrupt   atomic.Bool // and wait for nothing more of the peer; the same
	toldSlow atomic.Bool // it was told that the peer does not read
}

// interrupt makes the reader stop, as soon as it waits for its peer.
func (c *remote) interrupt() {
	c.cut.Store(true)
	stop := c.sock.SetReadDeadline
	if c.early.Load() {
		stop = c.sock.SetDeadline
	}
	_ = stop(time.Unix(1, 0)) // a connection that is closed already stops too
}

// giveWay ends the connection for others, soon and without a word.
func (c *remote) giveWay() {
	c.abrupt.Store(true)
	c.interrupt()
}

// abort cuts the connection.
func (c *remote) abort() {
	c.cut.Store(true)
	_ = c.sock.Close() // its users see that
}

// memoryNow takes n bytes of the budget, after waiting for them if need be.
func (c *remote) memoryNow(n int64) error {
	if !c.hold.Acquire(n) {
		return context.Canceled
	}
	return nil
}

// errGone ends a connection whose PeerError was reported already.
var errGone = errors.New("forward: connection given up")

// unstored tells that the handler could not store, and makes the reader stop.
func (c *remote) unstored(err error) {
	if c.s.ctx.Err() == nil {
		c.report(PeerUnstored, ActionClose, "", 0, err)
	}
	c.interrupt()
}

// broken closes a connection that cannot be written to any more, and passes err on.
func (c *remote) broken(err error) error {
	c.abort()
	return err
}

// known is what is known of the sender. While it logs in its reader may be adding to that.
func (c *remote) known() *Sender {
	if s := c.sender; c.early.Load() {
		return &Sender{Endpoint: s.Endpoint, Addr: s.Addr, Peer: s.Peer, Conn: s.Conn}
	}
	return c.sender
}

// report reports a PeerError of this connection.
func (c *remote) report(k PeerErrorKind, f Action, tag string, entries int, err error) {
	c.s.tell(c.count, PeerError{Kind: k, Action: f, Sender: c.known(), Tag: tag, Entries: entries, Err: err})
}

// refuse tells that a message was refused.
func (c *remote) refuse(tag string, err error) {
	c.count.refused.Add(1)
	kind := PeerInvalidMessage
	if f := faultOf(err); f != nil {
		kind = f.kind
	}
	c.report(kind, ActionRefuse, tag, 0, err)
}

// slowReader tells, once, that the peer does not take what is written.
func (c *remote) slowReader() {
	if !c.toldSlow.Swap(true) {
		c.report(PeerSlowReader, ActionClose, "", 0, errors.New("acks are not read"))
	}
}

// refused tells of a message that is refused. What ends the connection it returns.
func (c *remote) refused(tag string, err error) error {
	if faultOf(err) == nil {
		return err // memory: the server is closing, or the handler refused what came before
	}
	c.refuse(tag, err)
	return nil
}

// unread tells whether there are bytes in the socket, or its end, that the connection has not come
// to yet. Called by the watcher.
func (c *remote) unread() bool { return c.raw != nil && unreadOf(c.raw) }
