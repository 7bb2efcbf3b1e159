// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"sync"

	"github.com/spillwaylog/spillway/internal/output"
)

// BreakerState is the state of a destination's circuit breaker. Its String is closed, open or
// half-open.
type BreakerState = output.BreakerState

const (
	// BreakerClosed says that deliveries go on.
	BreakerClosed = output.BreakerClosed
	// BreakerOpen says that deliveries failed several times in a row; the destination is left alone
	// for a while.
	BreakerOpen = output.BreakerOpen
	// BreakerHalfOpen says that one attempt is being made.
	BreakerHalfOpen = output.BreakerHalfOpen
)

// BreakerEvent is a change of state: State, At which time, and if it opened why, in Err.
type BreakerEvent = output.BreakerEvent

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

// breakers are the subscribers.
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

func (s *breakers) tell(event BreakerEvent) {
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
