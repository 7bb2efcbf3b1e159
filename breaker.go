// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
)

// BreakerState is the state of a destination's circuit breaker.
type BreakerState uint8

const (
	// BreakerClosed says that deliveries go on.
	BreakerClosed BreakerState = iota
	// BreakerOpen says that deliveries failed several times in a row; the destination is left alone
	// for a while.
	BreakerOpen
	// BreakerHalfOpen says that one attempt is being made.
	BreakerHalfOpen
)

// String returns closed, open or half-open.
func (s BreakerState) String() string {
	switch s {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	}
	return "unknown"
}

// BreakerEvent is a change of state.
type BreakerEvent struct {
	State BreakerState
	Err   error // why it opened
	At    time.Time
}

// Subscribe returns a channel of the changes of the destination's circuit breaker from now on. Who
// does not keep up misses the oldest. Close closes the channel.
func (l *Logger) Subscribe() <-chan BreakerEvent {
	if l.off() {
		ch := make(chan BreakerEvent)
		close(ch)
		return ch
	}
	return l.c.breakers.subscribe()
}

// breakers are those who have subscribed.
type breakers struct {
	mu     sync.Mutex
	list   []chan BreakerEvent
	closed bool
}

const backlog = 16

func (s *breakers) subscribe() <-chan BreakerEvent {
	ch := make(chan BreakerEvent, backlog)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(ch)
		return ch
	}
	s.list = append(s.list, ch)
	return ch
}

func (s *breakers) tell(e output.BreakerEvent) {
	event := BreakerEvent{Err: e.Err, At: e.At}
	switch e.State {
	case output.Open:
		event.State = BreakerOpen
	case output.HalfOpen:
		event.State = BreakerHalfOpen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.list {
		for !s.closed {
			select {
			case ch <- event:
			default:
				select {
				case <-ch: // the oldest goes
				default:
				}
				continue
			}
			break
		}
	}
}

func (s *breakers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		for _, ch := range s.list {
			close(ch)
		}
	}
}
