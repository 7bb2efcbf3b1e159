// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// Why a ring takes no appends. It only rises.
const (
	overClosing = 1 + iota // but AppendReserved
	overFailed
	overClosed
)

// life is whether the ring takes appends, and what wakes its reader. Every append reads it.
type life struct {
	over    atomic.Uint32 // why there are no appends any more; 0 while there are
	asleep  atomic.Uint32 // the reader wants to be woken; written by the reader, and by the appender that wakes it
	sawBusy atomic.Uint32 // the reader went to sleep while a lane was busy
	wake    atomic.Pointer[func()]
	failure atomic.Pointer[error]
	space   *space // appenders that wait there are woken at the end, too
}

func (l *life) raise(why uint32) {
	for {
		old := l.over.Load()
		if old >= why || l.over.CompareAndSwap(old, why) {
			return
		}
	}
}

// fail ends a ring whose memory cannot be trusted, and returns why: the first fault that was met.
// Not under a lock.
func (l *life) fail(err error) error {
	if !errors.Is(err, ErrFailed) {
		err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	l.failure.CompareAndSwap(nil, &err)
	l.raise(overFailed)
	l.space.allow()
	l.callWake()
	return *l.failure.Load()
}

// Failed is nil, or why the ring failed: an error that wraps [ErrFailed].
func (l *life) Failed() error {
	if err := l.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// overErr is why the ring takes no appends, nil while it does.
func (l *life) overErr() error {
	switch l.over.Load() {
	case 0:
		return nil
	case overFailed:
		return l.Failed()
	}
	return ErrClosed
}

// SetWake sets what is called when the reader sleeps and a record comes, when the pressure is
// passed (see [Ring.SetPressure]) and when the ring fails. Appenders call it: it must not block,
// nor call the ring. Set it before the first Append.
func (l *life) SetWake(fn func()) { l.wake.Store(&fn) }

func (l *life) callWake() {
	if fn := l.wake.Load(); fn != nil {
		(*fn)()
	}
}

// wakeReader wakes the reader if it sleeps.
func (l *life) wakeReader() {
	if l.asleep.Load() != 0 && l.asleep.CompareAndSwap(1, 0) {
		l.callWake()
	}
}
