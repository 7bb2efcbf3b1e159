// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"io"
	"time"
)

// interrupt makes the reader stop, as soon as it waits for its peer.
func (c *conn) interrupt() {
	c.cut.Store(true)
	stop := c.sock.SetReadDeadline
	if c.early.Load() {
		stop = c.sock.SetDeadline
	}
	_ = stop(time.Unix(1, 0)) // a connection that is closed already stops too
}

// giveWay ends the connection for others, soon and without a word.
func (c *conn) giveWay() {
	c.abrupt.Store(true)
	c.interrupt()
}

// abort cuts the connection.
func (c *conn) abort() {
	c.cut.Store(true)
	_ = c.sock.Close() // whoever uses it sees that
}

// linger is how long a closing connection waits for its peer to take the last acks and close too.
const linger = 250 * time.Millisecond

// end tells why the connection ends, lets what is in flight be acked, closes, and gives back what
// it holds.
func (c *conn) end(err error) {
	partial := c.w > c.r || c.tinyN > 0 || !c.dec.Idle()
	f := faultOf(err)
	switch {
	case c.s.down.Load() || c.cut.Load(): // told, or our own wish
	case c.under != nil && c.under.late.Load():
		c.slowReader()
	case f != nil:
		c.trouble(f.kind, Closed, "", 0, f.err)
	case errors.Is(err, errOnce):
		if c.w > c.r {
			c.trouble(Denied, Closed, "", 0, errors.New("more than one message, and keepalive is denied"))
		}
	case partial:
		if errors.Is(err, io.EOF) {
			err = errors.New("the stream ended within a message")
		}
		c.trouble(Partial, Closed, "", c.w-c.r, err)
	case !errors.Is(err, io.EOF) && c.bytes.Load() > 0 && !errors.Is(err, errGone):
		c.trouble(Broken, Closed, "", 0, err)
	}
	c.release()
	_ = c.await(0) // whatever it ran into was told
	c.close(err)
	c.lentBack()
	c.s.ended(c)
}

// close closes the connection, if it is ours to close first so that acks are not lost: closing a
// socket with unread bytes in it resets the connection, and that overtakes what was written.
func (c *conn) close(err error) {
	if c.abrupt.Load() {
		_ = c.sock.Close() // others wait for what it takes
		return
	}
	if c.tls != nil { // says goodbye, but does not wait for who does not listen
		defer time.AfterFunc(linger, func() { _ = c.sock.Close() }).Stop()
		_ = c.tls.CloseWrite()
	}
	if cw, ok := c.sock.(interface{ CloseWrite() error }); ok && !errors.Is(err, io.EOF) && c.acked.Load() && c.s.ctx.Err() == nil && cw.CloseWrite() == nil {
		if c.sock.SetReadDeadline(time.Now().Add(linger)) == nil {
			for scrap := make([]byte, parkedBuffer); ; { // in large pieces: what is not read in time costs the acks
				if _, err := c.sock.Read(scrap); err != nil || c.s.ctx.Err() != nil {
					break
				}
			}
		}
	}
	_ = c.sock.Close() // nothing is to be written any more
}

// release gives back buffer and group.
func (c *conn) release() {
	if c.g != nil {
		for _, b := range c.g.extra { // of a group that was not handed on
			c.drop(b)
		}
		c.g.reset()
		c.putGroup()
	}
	c.dropBuffer()
	if c.s.async == nil {
		c.forgive()
	}
}

// forgive gives back what was taken of the budget by whoever was interrupted between asking and
// taking.
func (c *conn) forgive() {
	c.s.mem.release(&c.hold, c.hold.held.Load()-c.hold.lent.Load())
	c.s.mem.settle(&c.hold)
}

// memory takes n bytes of the budget, after waiting for them if need be.
func (c *conn) memory(n int64) error {
	if c.s.mem.try(&c.hold, n) {
		return nil
	}
	if c.g != nil { // what is complete need not wait, and gives back what it holds
		if err := c.flush(); err != nil {
			return err
		}
	}
	return c.memoryNow(n)
}

// memoryNow is memory for a group that is being handed on.
func (c *conn) memoryNow(n int64) error {
	if !c.s.mem.acquire(&c.hold, n, c.s.stop, c.s.lack) {
		return context.Canceled
	}
	return nil
}
