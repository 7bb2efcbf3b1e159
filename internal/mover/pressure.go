// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"sync/atomic"
)

// A pressure is what calls that find no room and the mover's goroutine tell each other.
type pressure struct {
	short    atomic.Bool           // an Append with DropOldest found no room
	hopeless atomic.Bool           // a full ring stays full for now: neither destination nor spill takes anything
	slow     atomic.Bool           // an Append with Prompt waited in vain, and the destination has not caught up since
	why      atomic.Pointer[error] // why the disk takes nothing, as an ErrFull; nil while it does
}

// noRoom notes why the disk takes nothing, for calls that find no room.
func (p *pressure) noRoom(err error) {
	err = fmt.Errorf("%w: the spill takes nothing: %w", ErrFull, err)
	p.why.Store(&err)
}

// roomless says why there is no room: ErrSlow while there is a disk that takes what it gets, and so
// is only slow; else an ErrFull.
func (p *pressure) roomless(disk bool) error {
	switch why := p.why.Load(); {
	case why != nil:
		return *why
	case disk:
		return ErrSlow
	}
	return ErrFull
}
