// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"net"
	"sync"
	"time"
)

// deadlineConn bounds each piece of a write by a timeout of its own: a large batch on a slow line
// goes on as long as it moves.
type deadlineConn struct {
	net.Conn
	timeout time.Duration

	mu    sync.Mutex
	until time.Time // what the owner has set
}

// pieceSize is what has to be written within the timeout.
const pieceSize = 64 << 10

// SetWriteDeadline sets a deadline for the whole write.
func (c *deadlineConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return c.Conn.SetWriteDeadline(t)
}

// next sets the deadline of one piece.
func (c *deadlineConn) next() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := time.Now().Add(c.timeout)
	if !c.until.IsZero() && c.until.Before(t) {
		t = c.until
	}
	return c.Conn.SetWriteDeadline(t)
}

func (c *deadlineConn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if err = c.next(); err != nil {
			break
		}
		var k int
		k, err = c.Conn.Write(p[n:min(len(p), n+pieceSize)])
		n += k
	}
	return n, err
}
