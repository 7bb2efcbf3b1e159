// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"
)

// faultError is a fault of the memory.
type faultError struct {
	at  int64 // offset in the ring
	err error
}

func (e *faultError) Error() string { return fmt.Sprintf("the memory at offset %d has gone", e.at) }
func (e *faultError) Unwrap() error { return e.err }

// touch runs fn, which reads or writes the ring's memory, and returns its fault.
func (m *memory) touch(fn func()) (err error) {
	if !m.shared {
		fn()
		return nil
	}
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if v := recover(); v != nil {
			err = m.faultOf(v)
		}
	}()
	fn()
	return nil
}

// faultOf returns a recovered fault as an error. Any other panic goes on.
func (m *memory) faultOf(v any) error {
	var fault interface {
		error
		Addr() uintptr
	}
	if err, ok := v.(error); ok && errors.As(err, &fault) {
		if at := fault.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(m.mem))); at < uintptr(len(m.mem)) {
			return fmt.Errorf("%w: %w", ErrFailed, &faultError{int64(at), err})
		}
	}
	panic(v)
}
