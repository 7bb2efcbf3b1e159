// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"io"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. serve is a connection's goroutine: fill reads what has arrived
// (read.go has the buffer), decode finds the messages in it and has them taken and handed on
// (conn.go). end does what is left to do.

// serve reads until the connection ends, and ends it.
func (c *conn) serve() { c.end(c.run()) }

// run reads until the connection ends, and returns why.
func (c *conn) run() error {
	var rest []byte
	var err error
	if c.early.Load() {
		a := admission{remote: &c.remote}
		rest, err = a.run()
		c.once = a.once
		c.seen = c.proof != nil // no JSON
	}
	if err == nil && len(rest) > 0 {
		if err = c.place(rest); err == nil {
			err = c.decode()
		}
	}
	if err != nil {
		return err
	}
	for {
		if err := c.fill(); err != nil {
			if !c.seen && c.w > c.r && errors.Is(err, io.EOF) { // nothing more will say what these few bytes are
				c.seen = true
				if err := c.decode(); err != nil {
					return err
				}
			}
			return err
		}
		if !c.seen {
			if wait, err := c.meet(); err != nil {
				return err
			} else if wait {
				continue
			}
			if first := c.buf.B[c.r]; first == '{' || first == '[' { // rule 43
				return c.runJSON()
			}
		}
		if err := c.decode(); err != nil {
			return err
		}
	}
}

// meet looks at the first bytes of a connection. wait: there are too few yet.
func (c *conn) meet() (wait bool, err error) {
	b := c.buf.B[c.r:c.w]
	name, more := wire.Alien(b)
	switch {
	case name == "TLS":
		return false, alienError(name, b, ": this listener takes plain Forward, one for TLS is forward+tls://")
	case name != "":
		return false, alienError(name, b, "")
	}
	c.seen = !more
	return more, nil
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
		c.report(f.kind, ActionClose, "", 0, f.err)
	case errors.Is(err, errOnce):
		if c.w > c.r {
			c.report(PeerDenied, ActionClose, "", 0, errors.New("more than one message, and keepalive is denied"))
		}
	case partial:
		if errors.Is(err, io.EOF) {
			err = errors.New("the stream ended within a message")
		}
		c.report(PeerPartial, ActionClose, "", c.w-c.r, err)
	case !errors.Is(err, io.EOF) && c.pace.Bytes() > 0 && !errors.Is(err, errGone):
		c.report(PeerBroken, ActionClose, "", 0, err)
	}
	c.release()
	_ = c.acks.await(0) // whatever it ran into was told
	c.close(err)
	c.lentBack()
}

// close closes the connection, if it is ours to close first so that acks are not lost: closing a
// socket with unread bytes in it resets the connection, and that overtakes what was written.
func (c *conn) close(err error) {
	if c.abrupt.Load() {
		_ = c.sock.Close() // others wait for what it takes
		return
	}
	if c.tls != nil { // says goodbye, but does not wait for a peer that does not listen
		defer time.AfterFunc(linger, func() { _ = c.sock.Close() }).Stop()
		_ = c.tls.CloseWrite()
	}
	if cw, ok := c.sock.(interface{ CloseWrite() error }); ok && !errors.Is(err, io.EOF) && c.acked.Load() &&
		c.s.ctx.Err() == nil && cw.CloseWrite() == nil {
		if c.sock.SetReadDeadline(time.Now().Add(linger)) == nil {
			for scrap := make([]byte, budget.Parked); ; { // in large pieces: what is not read in time costs the acks
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
			c.hold.Drop(b)
		}
		c.g.reset()
		c.putGroup()
	}
	c.dropBuffer()
	if c.s.async == nil {
		c.hold.Forgive()
	}
}

// lentBack waits until the handler has finished all chunks of the connection, or the server is
// closing. What else the connection is charged with is forgiven.
func (c *conn) lentBack() {
	if c.s.async == nil {
		return
	}
	c.away.until(none, c.s.stop)
	c.away.mu.Lock()
	defer c.away.mu.Unlock()
	c.hold.Forgive()
}
