// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/await"
)

// A connection sends what is due on it. Two goroutines: one writes, the other one reads what the
// server answers.
type connection struct {
	number  int
	nc      net.Conn
	pace    pace
	block   *block
	unacked *unacked      // nil without acks
	room    chan struct{} // acks were read; holds one
	measure time.Time     // the warm-up ends
	end     time.Time     // nothing is due after it
	limit   time.Time     // the server has drained it by then

	messages, events, bytes atomic.Int64 // written
	acked                   atomic.Int64 // messages
	finished                atomic.Bool  // all is written; a server may close now
	latencies               histogram    // of the goroutine that reads
	drained                 bool         // the server closed after it had read everything; valid after run
}

var (
	errClosed  = errors.New("the server closed the connection")
	errUnacked = errors.New("acks are missing")
	errStalled = errors.New("the server does not read")
)

// lastWords is how long is read after a write has failed.
const lastWords = time.Second

// run returns when everything due is sent and drained, or why it is not. outer ends it early.
func (c *connection) run(outer context.Context) error {
	defer c.nc.Close()
	_ = c.nc.SetDeadline(c.limit) // a connection without deadlines ends with its server
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = c.nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	answers := make(chan error, 1)
	go func() {
		err := c.read()
		answers <- err
		cancel() // whatever it was, it makes no sense to go on writing
	}()
	err := c.write(ctx)
	if err == nil {
		err = c.finish()
	}
	if err != nil && ctx.Err() == nil { // the server may have said why before it closed
		_ = c.nc.SetReadDeadline(time.Now().Add(lastWords))
	}
	answer := <-answers
	switch {
	case outer.Err() != nil:
		return outer.Err()
	case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(answer, errNoAck) &&
		!errors.Is(answer, errStrange):
		return err
	}
	return answer
}

// grace is for what became due in the last tick.
const grace = 5 * tick

// write sends what is due until the end.
func (c *connection) write(ctx context.Context) error {
	var sent int64 // messages
	var now time.Time
	push := func(id []byte) { c.unacked.push(id, c.pace.at(c.unacked.pushed.Load(), now)) }
	for {
		now = time.Now()
		clock := now
		if !now.Before(c.end) {
			if !now.Before(c.end.Add(grace)) || c.pace.perTick == 0 {
				return nil
			}
			clock = c.end
		}
		due := c.pace.due(clock) - sent
		if due <= 0 {
			at := c.pace.at(sent, now)
			if at.After(c.end) {
				if clock.Equal(c.end) {
					return nil
				}
				at = c.end
			}
			if err := await.Pause(ctx, time.Until(at)); err != nil {
				return err
			}
			continue
		}
		if c.unacked != nil {
			room := c.unacked.room()
			if room == 0 {
				if !c.wait(ctx) {
					return ctx.Err()
				}
				continue
			}
			due = min(due, room)
		}
		wire, n, err := c.block.take(due, now, push)
		if err != nil {
			return err
		}
		if _, err := c.nc.Write(wire); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if timedOut(err) {
				err = errStalled
			}
			return c.errorf("after %d messages: %w", sent, err)
		}
		sent += int64(n)
		c.messages.Add(int64(n))
		c.events.Add(int64(n) * int64(c.block.o.Batch))
		c.bytes.Add(int64(len(wire)))
	}
}

// wait waits for acks, or the end; false when ctx is done.
func (c *connection) wait(ctx context.Context) bool {
	t := time.NewTimer(time.Until(c.end.Add(grace)))
	defer t.Stop()
	select {
	case <-c.room:
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// finish tells the server that nothing follows.
func (c *connection) finish() error {
	c.finished.Store(true)
	if c.unacked != nil {
		if c.unacked.room() == int64(len(c.unacked.ring)) {
			_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // all is acked: there is nothing to read
		}
		return nil
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return c.errorf("%w", err)
		}
		return nil
	}
	return c.nc.Close()
}

// read reads until there is nothing more to come. nil says that all was acked, or that the server
// has drained the connection or could not say so.
func (c *connection) read() error {
	if c.unacked == nil {
		_, err := io.Copy(io.Discard, struct{ io.Reader }{c.nc}) // so that errors name what reads
		if c.finished.Load() {
			c.drained = err == nil
			return nil
		}
		if timedOut(err) {
			err = errStalled
		}
		return c.lost(err)
	}
	err := readAcks(c.nc, c.take)
	if c.finished.Load() && c.unacked.room() == int64(len(c.unacked.ring)) {
		c.drained = true
		return nil
	}
	if timedOut(err) {
		err = errUnacked
	}
	return c.lost(err)
}

// lost says why a connection ended before it should have.
func (c *connection) lost(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		err = errClosed
	}
	if c.unacked == nil {
		return c.errorf("after %d messages: %w", c.messages.Load(), err)
	}
	return c.errorf("after %d messages, %d of them acked: %w", c.messages.Load(), c.acked.Load(), err)
}

// errDrained ends the reading of acks when the last one has come.
var errDrained = errors.New("all is acked")

// take notes what has been acked.
func (c *connection) take(ids [][]byte) error {
	now := time.Now()
	for _, id := range ids {
		due, err := c.unacked.take(id)
		if err != nil {
			return err
		}
		if !now.Before(c.measure) {
			c.latencies.add(now.Sub(due))
		}
		c.acked.Add(1)
	}
	select {
	case c.room <- struct{}{}:
	default:
	}
	if c.finished.Load() && c.unacked.room() == int64(len(c.unacked.ring)) {
		return errDrained
	}
	return nil
}

func (c *connection) errorf(format string, args ...any) error {
	return fmt.Errorf("connection %d to %v: %w", c.number, c.nc.RemoteAddr(), fmt.Errorf(format, args...))
}

func timedOut(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
