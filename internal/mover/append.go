// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/spillwaylog/spillway/ring"
)

// Append takes an event. payload is what AppendPayload wrote, and a record: one MessagePack map. It
// is copied. t is in Unix nanoseconds, or ring.Now. keep says to wait for room, up to
// Config.MaxWait, whatever the policy. h is the caller's, see ring.Hint.
//
// The error is nil, or wraps ErrFull, ErrTooLarge or ErrClosed: then the event was not accepted,
// and is counted. With WaitDelivered it may wrap ErrAccepted. The call returns at the latest when
// ctx ends, and after Config.MaxWait.
func (m *Mover) Append(ctx context.Context, h *ring.Hint, t int64, keep bool, payload []byte) error {
	if m.closed.Load() {
		return m.refuseClosed()
	}
	s := m.rings.cur.Load()
	key, err := s.Ring.Append(h, t, payload)
	wait := m.cfg.MaxWait
	if err != nil {
		began := time.Now()
		s, key, err = m.appendSlowly(ctx, s, h, t, keep, payload, err)
		if err != nil {
			return err
		}
		wait -= time.Since(began)
	}
	switch {
	case m.cfg.WaitDelivered:
		return s.await(ctx, wait, key, m.mail.wake)
	case m.cfg.Prompt && !m.slow.Load():
		// What became of the event is told elsewhere: it was accepted.
		if errors.Is(s.await(ctx, min(wait, m.cfg.promptFor), key, m.mail.wake), ErrTimeout) && ctx.Err() == nil {
			m.slow.Store(true)
		}
	}
	return nil
}

// AppendKeyed is Append that tells which ring has the event, and under which key, and does not wait
// for the delivery.
func (m *Mover) AppendKeyed(ctx context.Context, h *ring.Hint, t int64, keep bool, payload []byte) (r *ring.Ring,
	key uint64, err error,
) {
	if m.closed.Load() {
		return nil, 0, m.refuseClosed()
	}
	s := m.rings.cur.Load()
	if key, err = s.Ring.Append(h, t, payload); err != nil {
		s, key, err = m.appendSlowly(ctx, s, h, t, keep, payload, err)
	}
	return s.Ring, key, err
}

// Ring is where events go at present. In plain memory it has no owner.
func (m *Mover) Ring() *ring.Ring { return m.rings.cur.Load().Ring }

// refuseClosed counts an event that came after Close.
func (m *Mover) refuseClosed() error {
	m.count.missed[Closed].Add(1)
	return ErrClosed
}

func (m *Mover) appendSlowly(ctx context.Context, s *feed, h *ring.Hint, t int64, keep bool, payload []byte,
	err error,
) (*feed, uint64, error) {
	var key uint64
	var timer *time.Timer
	yielded := false
	for {
		switch {
		case err == nil:
			return s, key, nil
		case errors.Is(err, ring.ErrTooLarge):
			m.Miss(TooLarge, 1)
			return s, 0, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(payload),
				min(int64(m.cfg.MaxEvent), m.cfg.RingSize/4))
		case errors.Is(err, ring.ErrClosed):
			return s, 0, m.refuseClosed()
		case errors.Is(err, ring.ErrFailed):
			m.rings.replace(s)
			switch {
			case m.rings.cur.Load() != s:
			case m.closed.Load():
				return s, 0, m.refuseClosed()
			default:
				m.Miss(Full, 1)
				return s, 0, fmt.Errorf("%w: %w", ErrFull, err)
			}
		case !errors.Is(err, ring.ErrFull):
			return s, 0, err
		}
		s = m.rings.cur.Load()
		space := s.Ring.Space() // before the attempt: room that comes in between is noticed then
		if key, err = s.Ring.Append(h, t, payload); !errors.Is(err, ring.ErrFull) {
			continue
		}
		wait := m.cfg.MaxWait
		switch {
		case keep || m.cfg.Overflow == Block:
		case m.cfg.Overflow == DropOldest:
			wait = min(wait, m.cfg.makeRoom)
			m.short.Store(true)
			m.mail.wake()
		default:
			if !yielded && !m.hopeless.Load() {
				// Often the mover has no processor, for they are all busy with calls such as this.
				yielded = true
				runtime.Gosched()
				continue
			}
			if err = m.roomless(m.cfg.Dir != ""); err == ErrSlow { //nolint:errorlint // the value itself
				m.Miss(Slow, 1)
			} else {
				m.Miss(Full, 1)
			}
			return s, 0, err
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		select {
		case <-space:
		case <-m.closing:
			return s, 0, m.refuseClosed()
		case <-ctx.Done():
			m.Miss(Waited, 1)
			return s, 0, fmt.Errorf("%w: %w", m.roomless(m.cfg.Dir != ""), ctx.Err())
		case <-timer.C:
			m.Miss(Waited, 1)
			return s, 0, fmt.Errorf("%w, for %v", m.roomless(m.cfg.Dir != ""), wait)
		}
	}
}
