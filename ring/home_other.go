// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package ring

import "time"

type home struct{ owner Owner }

func settle(*Options, time.Time, *memory, func() error) (*home, error) { return nil, ErrUnsupported }

func (h *home) unmap([]byte) error       { return nil }
func (h *home) leave(string, bool) error { return nil }

// Adopt finds nothing where no memory outlives a process.
func Adopt(_, _ string, _ func(Owner) bool, _ func(error)) ([]*Ring, error) {
	return nil, ErrUnsupported
}

func ownerLives(string) bool { return false }

// A Dir is an open folder of rings; here none can be.
type Dir struct{ MaxSize int64 }

// OpenDir says that there is none.
func OpenDir(string) (*Dir, error) { return nil, ErrUnsupported }

// Close does nothing.
func (*Dir) Close() error { return nil }

// UID is no user.
func (*Dir) UID() int { return -1 }

// Names finds nothing.
func (*Dir) Names(int) ([]string, error) { return nil, ErrUnsupported }

// Clean does nothing.
func (*Dir) Clean(int) {}

// Has finds nothing.
func (*Dir) Has(string) bool { return false }

// Look finds nothing.
func (*Dir) Look(string, func(Owner) bool) (Owner, bool, error) {
	return Owner{}, false, ErrUnsupported
}

// Adopt finds nothing.
func (*Dir) Adopt(string, func(Owner) bool, func(error)) (*Ring, error) { return nil, ErrUnsupported }
