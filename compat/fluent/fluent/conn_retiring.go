// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// retiringConn ends after an interval, as if the server had closed it, so that its owner looks up
// the host and connects again. It ends only between messages and when all that was written is
// acked: nothing is sent twice for its sake.
type retiringConn struct {
	net.Conn
	acked bool // the server acks each message
	timer *time.Timer

	mu      sync.Mutex
	old     bool // the interval is over
	retired bool
	writing bool
	out, in counter
}

var errRetired = errors.New("fluent: a connection of AsyncReconnectInterval's age")

// counter counts the values in a stream.
type counter struct {
	scan    msgpack.Scanner
	values  uint64
	strange bool // it is no MessagePack: nothing is known
}

func (c *counter) add(p []byte) {
	for len(p) > 0 && !c.strange {
		n, done, err := c.scan.Scan(p)
		if done {
			c.values++
		}
		c.strange = err != nil
		p = p[n:]
	}
}

func newRetiringConn(nc net.Conn, interval time.Duration, acked bool) *retiringConn {
	c := &retiringConn{Conn: nc, acked: acked}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = time.AfterFunc(interval, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.old = true
		c.lookLocked()
	})
	return c
}

// lookLocked retires the connection if it is time. With mu held.
func (c *retiringConn) lookLocked() {
	quiet := !c.writing && !c.out.scan.Partial() && (!c.acked || c.in.values >= c.out.values)
	if c.old && quiet && !c.retired {
		c.retired = true
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes the reader; if not, the next Write does
	}
}

func (c *retiringConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.retired {
		c.mu.Unlock()
		return 0, errRetired
	}
	c.writing = true
	c.out.add(p)
	c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing = false
	c.lookLocked()
	return n, err
}

func (c *retiringConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in.add(p[:n])
	c.lookLocked()
	if n == 0 && c.retired {
		return 0, io.EOF
	}
	return n, err
}

// Close closes the connection.
func (c *retiringConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}

// wrapper returns what an Async logger's connections are wrapped in.
func (c *Config) wrapper() func(net.Conn) net.Conn {
	timeout, asJSON, acked := c.WriteTimeout, c.MarshalAsJSON, c.RequestAck
	interval := time.Duration(c.AsyncReconnectInterval) * time.Millisecond
	return func(nc net.Conn) net.Conn {
		if timeout > 0 {
			nc = &deadlineConn{Conn: nc, timeout: timeout}
		}
		if asJSON {
			nc = newJSONConn(nc)
		}
		if interval > 0 {
			nc = newRetiringConn(nc, interval, acked)
		}
		return nc
	}
}
