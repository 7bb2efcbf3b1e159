// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/msgpack"
)

// link is one connection. A goroutine reads from it all the time: acks, and the end, so that
// nothing is written to a server that is gone.
type link struct {
	nc    net.Conn
	acks  bool // some are to come
	json  bool
	ended func(quiet bool) bool // for one goroutine at a time: usable

	writing sync.Mutex // one message at a time

	mu      sync.Mutex
	waiting []*waiter // for acks
	err     error     // why it cannot be used any more
}

// waiter is a call that waits for an ack.
type waiter struct {
	ack  string
	done chan error
}

var (
	errEnded   = errors.New("the server closed the connection")
	errNoAcks  = errors.New("the server answered with something that is no ack")
	errUnasked = errors.New("the server acked what nobody waits for")
)

func newLink(nc net.Conn, acks, asJSON bool) *link {
	return &link{nc: nc, acks: acks, json: asJSON, ended: endOf(nc)}
}

// usableLocked reports whether the connection has not ended, as far as can be known here and now.
// It is called with the sender's lock held.
func (l *link) usableLocked(quiet bool) bool {
	if l.ended(quiet) {
		l.fail(errEnded)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

// fail gives the connection up, for ever, and tells the calls that wait.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	_ = l.nc.Close() // there is nothing to be done about an error
	for _, w := range l.waiting {
		w.done <- err
	}
	l.waiting = nil
}

// why is the reason why the connection was given up, or err if it was not.
func (l *link) why(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	return err
}

// send writes a message and, if it has an id, waits for its ack. After an error the connection is
// given up.
func (l *link) send(data []byte, ack string, writeTimeout, readTimeout time.Duration) error {
	var w *waiter
	l.writing.Lock()
	if ack != "" {
		w = &waiter{ack, make(chan error, 1)}
		l.mu.Lock()
		if l.err == nil {
			l.waiting = append(l.waiting, w) // before the write: the ack may be faster
		}
		l.mu.Unlock()
	}
	err := l.write(data, writeTimeout)
	l.writing.Unlock()
	if err != nil {
		err = l.why(err)
		l.fail(err)
		return err
	}
	if w == nil {
		return nil
	}
	var late <-chan time.Time
	if readTimeout > 0 {
		t := time.NewTimer(readTimeout)
		defer t.Stop()
		late = t.C
	}
	select {
	case err = <-w.done:
	case <-late:
		l.fail(fmt.Errorf("no ack in %v: %w", readTimeout, os.ErrDeadlineExceeded))
		err = <-w.done // nil if the ack came in the last moment
	}
	return err
}

func (l *link) write(data []byte, timeout time.Duration) error {
	l.mu.Lock()
	err := l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	if err := l.nc.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err = l.nc.Write(data)
	return err
}

// read reads until the connection ends.
func (l *link) read() {
	var err error
	switch {
	case !l.acks: // whatever it says is no answer
		if _, err = io.Copy(io.Discard, l.nc); err == nil {
			err = io.EOF
		}
	case l.json:
		err = l.readJSON()
	default:
		err = l.readMsgpack()
	}
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	l.fail(err)
}

func (l *link) readJSON() error {
	dec := json.NewDecoder(l.nc)
	for {
		var a AckResp
		if err := dec.Decode(&a); err != nil {
			return err
		}
		if err := l.take(a.Ack); err != nil {
			return err
		}
	}
}

// maxAck is the largest ack that is read.
const maxAck = 4096

func (l *link) readMsgpack() error {
	buf := make([]byte, maxAck)
	var scan msgpack.Scanner
	for start, seen, end := 0, 0, 0; ; {
		n, err := l.nc.Read(buf[end:])
		for end += n; seen < end; {
			k, done, err := scan.Scan(buf[seen:end])
			if err != nil {
				return fmt.Errorf("%w: %w", errNoAcks, err)
			}
			if seen += k; !done {
				break
			}
			var a AckResp
			if _, err := a.UnmarshalMsg(buf[start:seen]); err != nil {
				return fmt.Errorf("%w: %w", errNoAcks, err)
			}
			if err := l.take(a.Ack); err != nil {
				return err
			}
			start = seen
		}
		if err != nil {
			return err
		}
		end, seen, start = copy(buf, buf[start:end]), seen-start, 0
		if end == len(buf) {
			return fmt.Errorf("%w: more than %d bytes", errNoAcks, maxAck)
		}
	}
}

// take hands an ack to the call that waits for it.
func (l *link) take(ack string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.waiting, func(w *waiter) bool { return w.ack == ack })
	if i < 0 {
		return fmt.Errorf("%w: %.40q", errUnasked, ack)
	}
	l.waiting[i].done <- nil
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return nil
}
