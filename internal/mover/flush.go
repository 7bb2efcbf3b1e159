// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"fmt"
	"slices"
)

// A flush waits for what was accepted before it.
type flush struct {
	to   []horizon
	done chan struct{}
}

type horizon struct {
	s   *feed
	key uint64
}

// flush returns when all that was accepted before the call is delivered, handed over or dropped, or
// when ctx ends.
func (l *loop) flush(ctx context.Context) error {
	f := &flush{done: make(chan struct{})}
	for _, s := range *l.rings.all.Load() {
		f.to = append(f.to, horizon{s, s.Ring.Horizon()})
	}
	if !l.mail.post(func() { l.flushes = append(l.flushes, f) }) {
		<-l.ended
		if l.count.stats().Held == 0 {
			return nil
		}
		return ErrClosed
	}
	select {
	case <-f.done:
		return nil
	case <-l.ended:
		if l.count.stats().Held == 0 {
			return nil
		}
		return ErrClosed
	case <-ctx.Done():
	}
	l.mail.post(func() { l.flushes = slices.DeleteFunc(l.flushes, func(g *flush) bool { return f == g }) })
	select {
	case <-f.done:
		return nil
	default:
	}
	return fmt.Errorf("mover: flush: %w; %d events are not delivered", ctx.Err(), l.count.stats().Held)
}

// answer returns the calls that wait for what has come about.
func (l *loop) answer() {
	for _, s := range *l.rings.all.Load() {
		l.loseUnread(s)
		s.settle()
		s.answerTo(0, s.doneTo.Load(), nil)
	}
	l.legacy.unmix()
	if l.slow.Load() && len(l.delivery.out) == 0 && l.legacy.begun() && len(l.legacy.queue) == 0 &&
		!l.rings.cur.Load().Fill() {
		l.slow.Store(false)
	}
	if len(l.flushes) == 0 || !l.legacy.begun() || len(l.legacy.queue) > 0 || l.legacy.mixed {
		return
	}
	l.flushes = slices.DeleteFunc(l.flushes, func(f *flush) bool {
		for _, h := range f.to {
			if !h.s.through(h.key) {
				return false
			}
		}
		close(f.done)
		return true
	})
}
