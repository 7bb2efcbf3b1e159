// SPDX-License-Identifier: Apache-2.0

package ring

import "errors"

var (
	// ErrFull says that the ring has no room. Nothing was appended. [Ring.Space] tells when to try
	// again.
	ErrFull = errors.New("ring: full")
	// ErrTooLarge says that a record is longer than Options.MaxRecord, or a ring than it may be.
	ErrTooLarge = errors.New("ring: record too large")
	// ErrClosed is the answer of a ring after Close, and of an adopted one to appends.
	ErrClosed = errors.New("ring: closed")
	// ErrFailed says that the memory under the ring has gone: someone cut its file, or its file
	// system could not keep what it had promised. Nothing can be appended any more; what can still
	// be read is read. It wraps the fault.
	ErrFailed = errors.New("ring: failed")
	// ErrLocked says that a living process has the ring.
	ErrLocked = errors.New("ring: in use")
	// ErrUnsafe says that a folder for rings is not the user's own, open to others, or no folder.
	ErrUnsafe = errors.New("ring: folder cannot be trusted")
	// ErrCorrupt is what is wrapped when something in a ring's files cannot be read.
	ErrCorrupt = errors.New("ring: corrupt")
	// ErrUnsupported says that this system has no memory that outlives a process.
	ErrUnsupported = errors.New("ring: no shared memory here")
)
