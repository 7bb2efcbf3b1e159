// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// run is the client's goroutine: it dials, writes, and gives up connections.
func (c *Client) run() {
	defer close(c.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var attempt *attempt
	for {
		c.mu.Lock()
		c.doing = ""
		if c.closed {
			break
		}
		limit := time.Hour
		var step func()
		if l := c.link; l != nil {
			if l.err == nil && c.sent > 0 && time.Since(l.progress) > c.AckTimeout {
				l.err = fmt.Errorf("no ack in %v", c.AckTimeout)
			}
			switch {
			case l.err != nil:
				step = func() { c.giveUp(l) }
			case l.once && l.acked && c.sent == 0:
				step = func() { c.retire(l) }
			case c.sent < min(len(c.calls), c.window(l)):
				step = func() { c.write(l) }
			case c.sent > 0:
				limit = time.Until(l.progress.Add(c.AckTimeout)) + time.Millisecond
			}
		} else if c.wanted || len(c.calls) > 0 {
			if limit = time.Until(c.notBefore); limit <= 0 {
				step = func() { attempt = c.dial(attempt) }
			}
		}
		c.unlock()
		if step != nil {
			step()
			continue
		}
		timer.Reset(limit)
		select {
		case <-c.wake:
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
	l := c.link
	if l != nil {
		l.err = ErrClientClosed
		c.link, c.sent = nil, 0
		c.doing = "closing the connection"
	}
	c.dropLocked()
	c.unlock()
	if l != nil {
		l.close()
	}
	if attempt != nil {
		c.mu.Lock()
		c.doing = "an attempt to connect that ignores its context"
		c.mu.Unlock()
		if r := <-attempt.result; r.sock != nil {
			_ = r.sock.Close() // nobody waits for it
		}
	}
}

// dropLocked ends everything that is in the queue and not being written. The client is closed.
func (c *Client) dropLocked() {
	for _, k := range c.calls {
		if !k.busy {
			k.finishLocked(ErrClientClosed)
		}
	}
	c.calls = slices.DeleteFunc(c.calls, func(k *Call) bool { return k.over })
	c.sent = min(c.sent, len(c.calls)) // nobody counts any more
}

// failedLocked notes a failure, and puts the next attempt off.
func (c *Client) failedLocked(err error) {
	c.backoffLocked()
	c.stats.Failures++
	c.last = err
	if c.Report != nil {
		c.notes = append(c.notes, func() { c.Report(err) })
	}
	c.changedLocked(false, err)
}

// backoffLocked puts the next attempt off.
func (c *Client) backoffLocked() {
	c.pause = min(max(2*c.pause, c.MinBackoff), c.MaxBackoff)
	c.notBefore = time.Now().Add(c.pause - rand.N(c.pause/2+1))
}

// changedLocked has Changed called.
func (c *Client) changedLocked(up bool, err error) {
	if c.Changed != nil {
		c.notes = append(c.notes, func() { c.Changed(up, err) })
	}
}

// An attempt to connect. There is one at a time: a Dial that ignores its ctx is not called
// again before it returns.
type attempt struct {
	result chan dialed
	ctx    context.Context
}

// grace is what a Dial gets beyond its time to notice that.
const grace = 100 * time.Millisecond

// dial makes a fresh connection. It takes up an attempt that was left, and returns one that it
// left.
func (c *Client) dial(a *attempt) *attempt {
	c.mu.Lock()
	c.doing = "an attempt to connect"
	c.mu.Unlock()
	limit := c.DialTimeout
	if a == nil {
		ctx, cancel := context.WithTimeout(c.ctx, c.DialTimeout)
		a = &attempt{result: make(chan dialed, 1), ctx: ctx}
		limit += grace
		go func(out chan<- dialed) {
			defer cancel()
			out <- c.connect(ctx)
		}(a.result)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var r dialed
	select {
	case r = <-a.result:
		a = nil
	case <-timer.C:
		r.err = fmt.Errorf("forward: %s: no connection in %v, and the attempt does not end", c.Address, c.DialTimeout)
	case <-c.ctx.Done():
		return a
	}
	c.mu.Lock()
	switch {
	case r.err != nil:
		c.failedLocked(r.err) // names network and address
	default:
		c.stats.Connects++
		c.link = &link{nc: r.nc, sock: r.sock, once: r.once, done: make(chan struct{})}
		go c.read(c.link)
		c.changedLocked(true, nil)
		if c.closed {
			c.link.interruptLocked()
		}
	}
	c.unlock()
	return a
}

// giveUp closes a connection, for ever; what was not acked on it is to be sent again. What the
// server had sent before that is read first: an ack may stand behind the failure of a write, and
// its chunk would arrive twice.
func (c *Client) giveUp(l *link) {
	c.mu.Lock()
	if c.sent > 0 && !c.NoAck {
		c.doing = "reading the last acks"
		c.mu.Unlock()
		l.finish(c.ctx.Done())
		c.mu.Lock()
	}
	if c.closed {
		c.unlock()
		return // run sees to the rest
	}
	if l.acked {
		c.pause = 0
	}
	switch idle := c.sent == 0 && errors.Is(l.err, errIdleEnd); {
	case idle && l.acked: // it worked, and was no longer needed
		c.notBefore = time.Time{}
		if !l.once { // else that is as it should be
			c.changedLocked(false, nil)
		}
	case idle && len(c.calls) == 0:
		c.backoffLocked()
		c.changedLocked(false, nil)
	default:
		c.failedLocked(fmt.Errorf("forward: %s: %w", c.Address, l.err))
	}
	c.link = nil
	c.sent = 0
	c.calls = slices.DeleteFunc(c.calls, func(k *Call) bool { return k.left })
	c.doing = "closing the connection"
	c.unlock()
	l.close()
}

// retire closes a connection that has done what it is good for.
func (c *Client) retire(l *link) {
	c.mu.Lock()
	c.pause, c.notBefore = 0, time.Time{}
	c.link = nil
	c.doing = "closing the connection"
	c.mu.Unlock()
	l.close()
}

// window is how many chunks may be in flight on a connection.
func (c *Client) window(l *link) int {
	if l.once {
		return 1
	}
	return c.Window
}

// maxWrite is what is written in one piece, if that is more than one chunk: none of them is done
// before it has left, whatever was acked meanwhile.
const maxWrite = 256 << 10

// smallEntries are copied, so that many small chunks leave in one piece.
const smallEntries = 8 << 10

// write writes what fits into the window and into one piece, and is ready; or it makes one call
// ready.
func (c *Client) write(l *link) {
	c.mu.Lock()
	batch, unready := c.batchLocked(l)
	switch {
	case l.err != nil || c.closed || len(batch) == 0 && unready == nil: // by now; run sees to it
		c.unlock()
		return
	case unready != nil:
		unready.busy = true
		c.unlock()
		c.prepare(unready)
		return
	}
	first := c.sent == 0
	if first {
		l.progress = time.Now()
	}
	began := l.progress
	c.sent += len(batch)
	for _, k := range batch {
		k.busy = true
		c.stats.Sent++
		if k.tries++; k.tries > 1 {
			c.stats.Resent++
		}
	}
	l.armLocked(c.AckTimeout)
	c.doing = "a write"
	c.mu.Unlock()
	out := gather(batch)
	n, err := out.WriteTo(l.nc)
	c.mu.Lock()
	l.disarmLocked()
	if first && l.progress.Equal(began) {
		l.progress = time.Now() // the time for its ack begins
	}
	whole := 0 // so many left in one piece
	for _, k := range batch {
		k.busy = false
		if n -= k.size(); n >= 0 {
			k.written = true
			whole++
		}
		switch {
		case k.acked, c.NoAck && n >= 0:
			k.finishLocked(nil)
		case k.left:
			k.finishLocked(ErrCanceled)
		case c.closed:
			k.finishLocked(ErrClientClosed)
		}
	}
	if c.NoAck && whole > 0 {
		c.stats.Acked += uint64(whole)
		c.calls = slices.Delete(c.calls, 0, min(whole, len(c.calls)))
		c.sent = max(0, c.sent-whole)
		l.acked = true
	}
	if err != nil && l.err == nil {
		l.err = err
	}
	c.unlock()
}

// batchLocked returns what is to be written next in one piece, or the first call, if that has to be
// made ready before.
func (c *Client) batchLocked(l *link) (batch []*Call, unready *Call) {
	next := c.calls[c.sent:max(c.sent, min(len(c.calls), c.window(l)))]
	size, n := int64(0), 0
	for ; n < len(next) && next[n].ready; n++ {
		if size += next[n].size(); size > maxWrite && n > 0 {
			break
		}
	}
	if n == 0 && len(next) > 0 {
		return nil, next[0]
	}
	return slices.Clone(next[:n]), nil
}

// gather makes one list of the bytes of many calls, small ones joined.
func gather(batch []*Call) (out net.Buffers) {
	var small []byte
	cut := func() {
		if len(small) > 0 {
			out = append(out, small)
			small = nil
		}
	}
	for _, k := range batch {
		small = append(small, k.head...)
		if len(k.entries) <= smallEntries {
			small = append(small, k.entries...)
		} else {
			cut()
			out = append(out, k.entries)
		}
		small = append(small, k.tail...)
	}
	cut()
	return out
}

// prepare makes a call ready for being written. It is busy.
func (c *Client) prepare(k *Call) {
	err := k.prepare()
	c.mu.Lock()
	k.busy = false
	switch {
	case k.left:
		k.finishLocked(ErrCanceled)
	case err != nil:
		k.finishLocked(err)
	case c.closed:
		k.finishLocked(ErrClientClosed)
	}
	if k.over {
		c.calls = slices.DeleteFunc(c.calls, func(q *Call) bool { return q == k })
	}
	c.unlock()
}

// take takes the ack that came on a link.
func (c *Client) take(l *link, id []byte) error {
	c.mu.Lock()
	defer c.unlock()
	if c.link != l { // one that is only given up still counts what it reads, see giveUp
		return errLate
	}
	if c.sent == 0 || c.NoAck {
		return fmt.Errorf("an ack for %q, and nothing to be acked", wire.Shorten(id))
	}
	k := c.calls[0]
	if string(k.id) != string(id) {
		return fmt.Errorf("an ack for %q in place of %q", wire.Shorten(id), wire.Shorten(k.id))
	}
	c.calls[0] = nil
	c.calls = c.calls[1:]
	c.sent--
	c.stats.Acked++
	l.progress, l.acked = time.Now(), true
	if l.writing { // over a slow link a window takes longer than an ack may
		l.armLocked(c.AckTimeout)
	}
	if k.busy {
		k.acked = true
	} else {
		k.finishLocked(nil)
	}
	c.wakeRunner()
	return nil
}

// read reads acks until the connection ends: they may be split over reads, and several may come in
// one (docs/forward.md rule 29).
func (c *Client) read(l *link) {
	defer close(l.done)
	err := wire.ReadAcks(l.nc, func(id []byte) error { return c.take(l, id) })
	if errors.Is(err, io.EOF) {
		err = errIdleEnd
	}
	c.mu.Lock()
	if l.err == nil {
		l.err = err
	}
	c.mu.Unlock()
	c.wakeRunner()
}
