// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"
)

// Why a ring takes no appends. It only rises.
const (
	overClosing = 1 + iota // but AppendReserved
	overFailed
	overClosed
)

func (r *Ring) raise(why uint32) {
	for {
		old := r.over.Load()
		if old >= why || r.over.CompareAndSwap(old, why) {
			return
		}
	}
}

// faultError is a fault of the memory.
type faultError struct {
	at  int64 // offset in the ring
	err error
}

func (e *faultError) Error() string { return fmt.Sprintf("the memory at offset %d has gone", e.at) }
func (e *faultError) Unwrap() error { return e.err }

// putGuarded is putRecord that survives a fault of the memory.
func (r *Ring) putGuarded(l *lane, off int64, key uint64, t int64, p []byte) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if v := recover(); v != nil {
			err = r.faultOf(v)
		}
	}()
	putRecord(r.mem[off:], l.nonce, off, l.index, key, t, p)
	return nil
}

// touch runs fn, which reads or writes the ring's memory, and returns its fault.
func (r *Ring) touch(fn func()) (err error) {
	if !r.shared {
		fn()
		return nil
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if v := recover(); v != nil {
			err = r.faultOf(v)
		}
	}()
	fn()
	return nil
}

// faultOf returns a recovered fault as an error. Any other panic goes on.
func (r *Ring) faultOf(v any) error {
	var fault interface {
		error
		Addr() uintptr
	}
	if err, ok := v.(error); ok && errors.As(err, &fault) {
		if at := fault.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(r.mem))); at < uintptr(len(r.mem)) {
			return fmt.Errorf("%w: %w", ErrFailed, &faultError{int64(at), err})
		}
	}
	panic(v)
}

// fail ends a ring whose memory cannot be trusted, and returns why: the first fault that was met.
// Not under mu.
func (r *Ring) fail(err error) error {
	if !errors.Is(err, ErrFailed) {
		err = fmt.Errorf("%w: %w", ErrFailed, err)
	}
	r.failure.CompareAndSwap(nil, &err)
	r.raise(overFailed)
	r.mu.Lock()
	r.allow()
	r.mu.Unlock()
	r.callWake()
	return *r.failure.Load()
}

// Failed is nil, or why the ring failed: an error that wraps [ErrFailed].
func (r *Ring) Failed() error {
	if err := r.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// overErr is why the ring takes no appends, nil while it does.
func (r *Ring) overErr() error {
	switch r.over.Load() {
	case 0:
		return nil
	case overFailed:
		return r.Failed()
	}
	return ErrClosed
}

// takes says that the ring takes appends to lane n.
func (r *Ring) takes(n uint16) bool {
	why := r.over.Load()
	return why == 0 || why == overClosing && n == reserved
}

// Guard runs fn, which reads [Record.Data], and turns a fault of the memory, which would end the
// process, into an error that wraps [ErrFailed]. fn must hold no lock and call nothing that cannot
// be broken off in the middle.
func (r *Ring) Guard(fn func()) error {
	if err := r.touch(fn); err != nil {
		return r.fail(err)
	}
	return nil
}

// Copy appends the data of one record to dst, or returns an error that wraps [ErrFailed], and dst
// as it was.
func (r *Ring) Copy(dst []byte, rec Record) ([]byte, error) {
	n := len(dst)
	err := r.Guard(func() { dst = append(dst, rec.Data...) })
	if err != nil {
		return dst[:n], err
	}
	return dst, nil
}
