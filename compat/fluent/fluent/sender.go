// SPDX-License-Identifier: Apache-2.0

package fluent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// grace is how long calls under way may go on while Close waits.
const grace = time.Second

// A sender sends messages for callers that wait for the result. It has one connection, made when it
// is needed; messages of several goroutines are in flight on it together. A message that fails is
// sent again by its own call, on a fresh connection.
type sender struct {
	config Config
	dial   func(context.Context) (net.Conn, error)
	ctx    context.Context // ends attempts to connect
	stop   context.CancelFunc

	readers sync.WaitGroup // the links' goroutines

	mu      sync.Mutex
	link    *link    // nil, or the connection of now
	opening *opening // somebody connects
	calls   int      // of send
	idle    chan struct{}
	closed  bool
}

// opening is a run of attempts to connect; all calls that need a connection wait for the same one.
type opening struct {
	done chan struct{}
	link *link
	err  error
}

func newSender(config Config, dial func(context.Context) (net.Conn, error)) *sender {
	s := &sender{config: config, dial: dial, idle: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// enter begins a call.
func (s *sender) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.calls++
	}
	return !s.closed
}

// leave ends a call.
func (s *sender) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 && s.closed {
		close(s.idle)
	}
}

// send sends a message, and with an ack waits for it.
func (s *sender) send(data []byte, ack string) error {
	if !s.enter() {
		return errClosedSync
	}
	defer s.leave()
	attempts := s.config.attempts()
	var last error
	for n := range attempts {
		if n > 1 && !s.wait(s.config.pause(n-1)) { // the first time again is at once: the connection is a fresh one
			return fmt.Errorf("fluent#write: %w", errClosing)
		}
		l, err := s.connect()
		if err != nil {
			return fmt.Errorf("fluent#write: %w", err)
		}
		if last = l.send(data, ack, s.config.WriteTimeout, s.config.ReadTimeout); last == nil {
			return nil
		}
		if errors.Is(last, errClosing) {
			return fmt.Errorf("fluent#write: %w", last)
		}
	}
	return fmt.Errorf("fluent#write: failed to write after %d attempts: %w", s.config.MaxRetry, last)
}

// wait pauses, and reports false when the sender is being closed.
func (s *sender) wait(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// connect returns the connection, or a fresh one if that has ended.
func (s *sender) connect() (*link, error) {
	s.mu.Lock()
	if s.link != nil && s.link.usableLocked(!s.config.RequestAck) {
		defer s.mu.Unlock()
		return s.link, nil
	}
	o := s.opening
	if o != nil {
		s.mu.Unlock()
		<-o.done
		return o.link, o.err
	}
	o = &opening{done: make(chan struct{})}
	s.link, s.opening = nil, o
	s.mu.Unlock()
	o.link, o.err = s.attempts()
	s.mu.Lock()
	if s.closed && o.link != nil { // close has given up on the link that there was, and would wait for this one
		o.link.fail(errClosing)
		o.link, o.err = nil, errClosing
	}
	s.link, s.opening = o.link, nil
	s.mu.Unlock()
	close(o.done)
	return o.link, o.err
}

// attempts tries to connect, MaxRetry times.
func (s *sender) attempts() (*link, error) {
	attempts := s.config.attempts()
	var last error
	for n := range attempts {
		if n > 0 && !s.wait(s.config.pause(n)) {
			return nil, errClosing
		}
		l, err := s.dialOnce()
		if err == nil {
			return l, nil
		}
		if s.ctx.Err() != nil {
			return nil, errClosing
		}
		last = err
	}
	return nil, fmt.Errorf("could not connect to fluentd after %d retries: %w", s.config.MaxRetry, last)
}

func (s *sender) dialOnce() (*link, error) {
	nc, err := s.dial(s.ctx)
	if err != nil {
		return nil, err
	}
	l := newLink(nc, s.config.RequestAck, s.config.MarshalAsJSON)
	s.readers.Go(l.read)
	return l, nil
}

// open makes the first connection, in one attempt.
func (s *sender) open() (*link, error) {
	l, err := s.dialOnce()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.link = l
	s.mu.Unlock()
	return l, nil
}

// close ends attempts to connect at once, calls that have written after grace, and the connection.
func (s *sender) close() {
	s.stop()
	s.mu.Lock()
	s.closed = true
	if s.calls == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-s.idle:
	case <-t.C:
	}
	s.mu.Lock()
	if s.link != nil {
		s.link.fail(errClosing)
	}
	s.mu.Unlock()
	<-s.idle
	s.readers.Wait()
}
