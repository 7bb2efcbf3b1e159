// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A waiter is an Append that returns when its event is delivered.
type waiter struct {
	key   uint64
	ch    chan error  // of one element
	timer *time.Timer // stopped while the waiter is in the pool
}

var waiters = sync.Pool{New: func() any {
	w := &waiter{ch: make(chan error, 1), timer: time.NewTimer(time.Hour)}
	w.timer.Stop()
	return w
}}

// await returns when the record is done, when ctx ends, or after wait.
func (m *Mover) await(ctx context.Context, wait time.Duration, s *source, key uint64) error {
	if s.doneTo.Load() >= key {
		return nil
	}
	w := waiters.Get().(*waiter)
	w.key = key
	s.mu.Lock()
	switch {
	case s.doneTo.Load() >= key:
		s.mu.Unlock()
		waiters.Put(w)
		return nil
	case s.dead:
		s.mu.Unlock()
		waiters.Put(w)
		return ErrUndelivered
	}
	s.waiters = append(s.waiters, w)
	first := s.waiting.Add(1) == 1
	s.mu.Unlock()
	if first {
		m.mail.wake()
	}
	w.timer.Reset(wait)
	defer func() {
		w.timer.Stop()
		waiters.Put(w)
	}()
	var late error
	select {
	case err := <-w.ch:
		return err
	case <-ctx.Done():
		late = fmt.Errorf("%w: %w", ErrTimeout, ctx.Err())
	case <-w.timer.C:
		late = ErrTimeout
	}
	s.mu.Lock()
	if i := slices.Index(s.waiters, w); i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
		s.waiting.Add(-1)
		s.mu.Unlock()
		return late
	}
	s.mu.Unlock()
	return <-w.ch // it was answered just now
}

// answerTo tells the waiters for keys in from..to.
func (s *source) answerTo(from, to uint64, err error) {
	if s.waiting.Load() == 0 {
		return
	}
	s.mu.Lock()
	kept := s.waiters[:0]
	for _, w := range s.waiters {
		if w.key < from || w.key > to {
			kept = append(kept, w)
			continue
		}
		w.ch <- err
	}
	clear(s.waiters[len(kept):])
	s.waiters = kept
	s.waiting.Store(int32(len(kept)))
	s.mu.Unlock()
}

// bury answers all who wait, and all who will.
func (s *source) bury() {
	s.mu.Lock()
	s.dead = true
	s.mu.Unlock()
	s.answerTo(0, s.doneTo.Load(), nil)
	s.answerTo(0, 1<<64-1, ErrUndelivered)
}

// A flush waits for what was accepted before it.
type flush struct {
	to   []horizon
	done chan struct{}
}

type horizon struct {
	s   *source
	key uint64
}

// Flush returns when all that was accepted before the call is delivered, handed over or dropped, or
// when ctx ends.
func (m *Mover) Flush(ctx context.Context) error {
	f := &flush{done: make(chan struct{})}
	for _, s := range *m.rings.all.Load() {
		f.to = append(f.to, horizon{s, s.r.Horizon()})
	}
	if !m.mail.post(func() { m.flushes = append(m.flushes, f) }) {
		<-m.ended
		if m.Stats().Held == 0 {
			return nil
		}
		return ErrClosed
	}
	select {
	case <-f.done:
		return nil
	case <-m.ended:
		if m.Stats().Held == 0 {
			return nil
		}
		return ErrClosed
	case <-ctx.Done():
	}
	m.mail.post(func() { m.flushes = slices.DeleteFunc(m.flushes, func(g *flush) bool { return f == g }) })
	select {
	case <-f.done:
		return nil
	default:
	}
	return fmt.Errorf("mover: flush: %w; %d events are not delivered", ctx.Err(), m.Stats().Held)
}

// answer tells all who wait for what has come about.
func (m *Mover) answer() {
	for _, s := range *m.rings.all.Load() {
		m.loseUnread(s)
		s.settle()
		s.answerTo(0, s.doneTo.Load(), nil)
	}
	m.unmix()
	if m.slow.Load() && m.inFlight == 0 && m.begun() && len(m.queue) == 0 && !m.rings.cur.Load().fill() {
		m.slow.Store(false)
	}
	if len(m.flushes) == 0 || !m.begun() || len(m.queue) > 0 || m.mixed {
		return
	}
	m.flushes = slices.DeleteFunc(m.flushes, func(f *flush) bool {
		for _, h := range f.to {
			if !h.s.through(h.key) {
				return false
			}
		}
		close(f.done)
		return true
	})
}

// through says that all records up to a horizon are done.
func (s *source) through(h uint64) bool {
	return (s.lines.len() == 0 || s.lines.front().first > h) && s.reached(h)
}
