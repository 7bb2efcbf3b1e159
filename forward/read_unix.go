// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward

import (
	"io"
	"net"
	"syscall"
)

// initRaw finds the socket under a connection. Only of the two types whose Read is known to be no more than a read of the socket: one that
// embeds them may do more.
func (c *conn) initRaw() {
	var sc syscall.Conn
	switch nc := c.nc.(type) {
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
}

// readRaw is called by the poller's Read: at once, and again whenever the socket is readable. Only when there is something to read does
// the connection keep a buffer.
func (c *conn) readRaw(fd uintptr) bool {
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
