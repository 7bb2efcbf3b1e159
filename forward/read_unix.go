// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward

import (
	"io"
	"net"
	"syscall"
)

// initRaw finds the socket under a connection. Only of the two types whose Read is known to be no
// more than a read of the socket: one that embeds them may do more.
func (c *reader) initRaw() {
	var sc syscall.Conn
	switch nc := c.sock.(type) {
	case *net.TCPConn:
		sc = nc
	case *net.UnixConn:
		sc = nc
	default:
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return // closed: the first Read says so
	}
	c.raw, c.try = raw, c.readRaw
	if c.tls != nil {
		c.try = c.readTLS
	}
}

// readRaw is called by the poller's Read: at once, and again whenever the socket is readable. Only
// when there is something to read does the connection keep a buffer.
func (c *reader) readRaw(fd uintptr) bool {
	c.hungry = !c.room(false)
	into := c.tiny[:]
	if !c.hungry {
		into = c.space()
	}
	for {
		n, err := syscall.Read(int(fd), into)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			c.park()
			return false
		case err != nil:
			c.readErr = err
		case n == 0:
			c.readErr = io.EOF
		default:
			c.readN = n
			if c.hungry {
				c.tinyN = n
			}
		}
		return true
	}
}

// readTLS is readRaw for TLS. It takes all records that have come, for they are small.
func (c *reader) readTLS(fd uintptr) bool {
	c.hungry = !c.room(false)
	into := c.tiny[:]
	if !c.hungry {
		into = c.space()
	}
	c.under.fd, c.under.now = fd, true
	n, err := 0, error(nil)
	for n < len(into) && err == nil {
		var k int
		c.under.room = len(into) - n
		k, err = c.tls.Read(into[n:])
		n += k
	}
	c.under.now = false
	c.under.drop()
	switch {
	case n > 0: // package tls remembers an error that stays
		c.readN = n
		if c.hungry {
			c.tinyN = n
		}
	case err == errAgain: //nolint:errorlint // package tls passes it on as it is
		c.pace.Brought(c.came(), c.hold.Own())
		c.park()
		return false
	default:
		c.readErr = err
	}
	return true
}
