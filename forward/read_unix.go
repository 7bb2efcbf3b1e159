// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward

import (
	"io"
	"net"
	"os"
	"syscall"
)

// initRaw finds the socket under a connection. Only of the two types whose Read is known to be no
// more than a read of the socket: one that embeds them may do more.
func (c *conn) initRaw() {
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

// readTLS is readRaw for TLS. It takes all records that have come, for they are small.
func (c *conn) readTLS(fd uintptr) bool {
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
		if c.stalled.Load() != 0 {
			c.brought(c.s.watch.looked.Load())
		}
		c.park()
		return false
	default:
		c.readErr = err
	}
	return true
}

// readNow reads from the socket without waiting.
func (s *socket) readNow(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(s.fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, errAgain
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// unread tells whether there are bytes in the socket, or its end, that the connection has not come
// to yet. Called by the watch.
func (c *conn) unread() (yes bool) {
	if c.raw == nil {
		return false
	}
	err := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		yes = err == nil
	})
	return err == nil && yes
}
