// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"
)

// errStrange is about an ack that acks nothing.
var errStrange = errors.New("an ack for nothing that is in flight")

// An unackedMessage is a message that waits for its ack.
type unackedMessage struct {
	id  [idChars]byte
	due time.Time
	ok  bool // acked, before an older one
}

// unacked are those of one connection, oldest first. One goroutine pushes, before it writes;
// another one takes off what is acked.
type unacked struct {
	ring   []unackedMessage
	pushed atomic.Int64 // written by the one that pushes
	done   atomic.Int64 // written by the other
}

func newUnacked(depth int) *unacked { return &unacked{ring: make([]unackedMessage, depth)} }

// room is how many may be pushed.
func (f *unacked) room() int64 { return int64(len(f.ring)) - f.pushed.Load() + f.done.Load() }

func (f *unacked) at(i int64) *unackedMessage { return &f.ring[i%int64(len(f.ring))] }

func (f *unacked) push(id []byte, due time.Time) {
	i := f.pushed.Load()
	*f.at(i) = unackedMessage{id: [idChars]byte(id), due: due}
	f.pushed.Store(i + 1)
}

// take finds the message that an ack names: mostly the oldest (docs/forward.md rule 26), but a
// server may have its own order.
func (f *unacked) take(id []byte) (due time.Time, err error) {
	first, end := f.done.Load(), f.pushed.Load()
	for i := first; i < end; i++ {
		if g := f.at(i); !g.ok && bytes.Equal(g.id[:], id) {
			g.ok = true
			due := g.due
			for first < end && f.at(first).ok {
				first++
			}
			f.done.Store(first)
			return due, nil
		}
	}
	return time.Time{}, errStrange
}
