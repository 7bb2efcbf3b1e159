// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"os"
	"sync"
)

// How this file is organised. The acks of one connection leave in the order of its messages, each
// group's after its wait. Where nothing has to be waited for and nothing is in line, the reading
// goroutine writes them itself. Otherwise they go in line for the acker, a goroutine that lives
// only as long as the line: thousands of idle connections have none.

// What may be in line for one connection. Beyond it nothing more is read: a client that does not
// read its acks is pushed back on, and cut when WriteTimeout is over.
const (
	maxAckBytes  = 128 << 10
	maxAckGroups = 1024
	maxAckWrite  = 32 << 10 // of what is ready, in one write
)

// ackGroup is one group's acks in line.
type ackGroup struct {
	acks  *ackBytes
	count int
	wait  func(context.Context) error
}

type ackBytes struct{ b []byte }

var ackPool = sync.Pool{New: func() any { return new(ackBytes) }}

func (a *ackBytes) put() {
	if cap(a.b) <= 64<<10 {
		ackPool.Put(a)
	}
}

// acks is a connection's line.
type acks struct {
	*remote

	mu      sync.Mutex
	line    []ackGroup
	bytes   int
	running bool
	err     error // the acker gave up
	// Closed when there is room, or nothing in line any more; nil: nobody waits. Only the reader
	// waits.
	room    chan struct{}
	want    int   // how short the line must be for that
	expires int64 // write deadline of the connection, by the clock
}

// asked is a ctx that is done: with it, wait is a question.
var asked = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ack lets the acks of a group leave after wait. Called by the reader.
func (a *acks) ack(b []byte, count int, wait func(context.Context) error) error {
	if wait == nil && len(b) == 0 {
		return nil
	}
	a.mu.Lock()
	if a.err != nil {
		a.mu.Unlock()
		return a.err
	}
	if wait == nil && !a.running {
		a.mu.Unlock()
		return a.writeAcks(b, count)
	}
	p := ackGroup{acks: ackPool.Get().(*ackBytes), count: count, wait: wait}
	p.acks.b = append(p.acks.b[:0], b...)
	a.line = append(a.line, p)
	a.bytes += len(b)
	if !a.running {
		a.running = true
		a.s.running.Add(1) // the connection, which is running, waits for the line before it ends
		go a.acker()
	}
	full := a.bytes > maxAckBytes || len(a.line) > maxAckGroups
	a.mu.Unlock()
	if full {
		return a.await(maxAckGroups / 2)
	}
	return nil
}

// await waits until the line is shorter than n groups, and half of the bytes. n 0: until the acker
// is gone.
func (a *acks) await(n int) error {
	a.mu.Lock()
	if !a.running || n > 0 && a.short(n) {
		defer a.mu.Unlock()
		return a.err
	}
	room := make(chan struct{})
	a.room, a.want = room, n
	a.mu.Unlock()
	<-room // the acker ends when the server does
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *acks) short(n int) bool { return len(a.line) < n && a.bytes <= maxAckBytes/2 }

// acker waits for groups and writes their acks, until there are none in line.
func (a *acks) acker() {
	defer a.s.running.Done()
	var out []byte
	for {
		a.mu.Lock()
		if a.err != nil {
			for _, p := range a.line {
				p.acks.put()
			}
			clear(a.line)
			a.line, a.bytes = nil, 0
		}
		if len(a.line) == 0 {
			a.running = false
			a.line = nil // an idle connection keeps nothing
			a.signalLocked(true)
			a.mu.Unlock()
			return
		}
		p := a.line[0]
		a.mu.Unlock()

		err := error(nil)
		if p.wait != nil {
			if err = p.wait(a.ctx); err != nil {
				a.unstored(err)
			}
		}
		taken, count := 1, p.count
		if err == nil {
			out = append(out[:0], p.acks.b...)
			for len(out) < maxAckWrite {
				p, ok := a.at(taken)
				if !ok || p.wait != nil && p.wait(asked) != nil {
					break
				}
				out = append(out, p.acks.b...)
				count += p.count
				taken++
			}
			err = a.writeAcks(out, count)
		}
		a.mu.Lock()
		if err != nil {
			a.err = err
		}
		for _, p := range a.line[:taken] {
			a.bytes -= len(p.acks.b)
			p.acks.put()
		}
		clear(a.line[:taken])
		if a.line = a.line[taken:]; len(a.line) > 0 {
			a.signalLocked(false)
		}
		a.mu.Unlock()
	}
}

// at returns what is at place i of the line.
func (a *acks) at(i int) (ackGroup, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i >= len(a.line) {
		return ackGroup{}, false
	}
	return a.line[i], true
}

// signalLocked wakes the reader, if it waits for no more than that.
func (a *acks) signalLocked(gone bool) {
	if a.room != nil && (gone || a.want > 0 && a.short(a.want)) {
		close(a.room)
		a.room = nil
	}
}

// writeAcks writes acks. A peer that does not take them is cut.
func (a *acks) writeAcks(b []byte, count int) error {
	if len(b) == 0 {
		return nil
	}
	// Acks are written by the acker, or by the reader while there is none: never by both.
	if a.under == nil { // else it sees to that
		if err := postpone(a.nc, a.s.clock(), &a.expires, a.s.writeTimeout); err != nil {
			return a.broken(err)
		}
	}
	if _, err := a.nc.Write(b); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			a.slowReader()
		}
		return a.broken(err)
	}
	a.count.acks.Add(uint64(count))
	a.acked.Store(true)
	return nil
}
