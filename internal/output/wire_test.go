// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A wire is one direction of a connection: like TCP it holds what was written and not yet read, and
// can be ended or reset. Unlike TCP it lives in memory, so time in a test's bubble passes by it.
type wire struct {
	mu     sync.Mutex
	buf    []byte
	room   int
	ended  bool  // FIN
	broken error // RST
	change chan struct{}
}

func newWire(room int) *wire { return &wire{room: room, change: make(chan struct{})} }

// update changes the wire and lets those look who wait for it.
func (w *wire) update(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.change)
	w.change = make(chan struct{})
}

// await calls f until it says that it is done, at each change and at the deadline.
func (w *wire) await(limit *deadline, f func() bool) error {
	for {
		w.mu.Lock()
		done := f()
		change := w.change
		w.mu.Unlock()
		if done {
			return nil
		}
		at, moved := limit.get()
		var timer <-chan time.Time
		if !at.IsZero() {
			d := time.Until(at)
			if d <= 0 {
				return os.ErrDeadlineExceeded
			}
			timer = time.After(d)
		}
		select {
		case <-change:
		case <-moved:
		case <-timer:
		}
	}
}

type deadline struct {
	mu    sync.Mutex
	at    time.Time
	moved chan struct{}
}

func (d *deadline) get() (time.Time, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.moved == nil {
		d.moved = make(chan struct{})
	}
	return d.at, d.moved
}

func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if d.moved != nil {
		close(d.moved)
		d.moved = nil
	}
	return nil
}

// An end is one end of a connection.
type end struct {
	in, out *wire
	rd, wd  deadline
}

// pipe returns the ends of a connection that holds room bytes in each direction.
func pipe(room int) (near, far *end) {
	a, b := newWire(room), newWire(room)
	return &end{in: a, out: b}, &end{in: b, out: a}
}

func (e *end) Read(p []byte) (n int, err error) {
	w := e.in
	late := w.await(&e.rd, func() bool {
		switch {
		case w.broken != nil:
			err = w.broken
		case len(w.buf) > 0:
			n = copy(p, w.buf)
			w.buf = w.buf[n:]
			close(w.change)
			w.change = make(chan struct{})
		case w.ended:
			err = io.EOF
		default:
			return false
		}
		return true
	})
	if late != nil {
		err = late
	}
	return n, err
}

func (e *end) Write(p []byte) (n int, err error) {
	w := e.out
	for n < len(p) && err == nil {
		late := w.await(&e.wd, func() bool {
			switch free := w.room - len(w.buf); {
			case w.broken != nil:
				err = w.broken
			case w.ended:
				err = net.ErrClosed
			case free > 0:
				k := min(free, len(p)-n)
				w.buf = append(w.buf, p[n:n+k]...)
				n += k
				close(w.change)
				w.change = make(chan struct{})
			default:
				return false
			}
			return true
		})
		if late != nil {
			err = late
		}
	}
	return n, err
}

// Close ends both directions; the other end reads what is still under way, and its writes fail.
func (e *end) Close() error {
	e.out.update(func() { e.out.ended = true })
	e.in.update(func() {
		if e.in.broken == nil {
			e.in.broken = syscall.EPIPE
		}
	})
	return nil
}

// CloseWrite is a FIN: the other end may still write.
func (e *end) CloseWrite() { e.out.update(func() { e.out.ended = true }) }

// Reset breaks both directions at once, with what is under way.
func (e *end) Reset() {
	for _, w := range []*wire{e.in, e.out} {
		w.update(func() { w.broken = syscall.ECONNRESET })
	}
}

func (e *end) SetReadDeadline(t time.Time) error  { return e.rd.set(t) }
func (e *end) SetWriteDeadline(t time.Time) error { return e.wd.set(t) }
func (e *end) SetDeadline(t time.Time) error {
	_ = e.rd.set(t)
	return e.wd.set(t)
}
func (*end) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (*end) RemoteAddr() net.Addr { return &net.TCPAddr{} }
