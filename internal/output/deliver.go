// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"

	"github.com/spillwaylog/spillway/forward"
)

// ErrClosed is the Err of a Result whose chunk was given up by Close, or submitted after it.
var ErrClosed = errors.New("output: closed")

// A Destination takes chunks and says what became of them. Its methods may be called by many goroutines.
type Destination interface {
	// Submit hands over a chunk. It never waits for the destination: what cannot be delivered now is kept, in the order of the calls. The caller leaves
	// c and its bytes untouched until done is called, which happens exactly once, on any goroutine, possibly during Submit, and with no lock held.
	// done must not block. A chunk needs an id.
	Submit(c *forward.Chunk, done func(Result))
	// Close gives up what is pending: done has been called with ErrClosed for each of them when it returns. It returns by ctx at the latest;
	// its error then names what was left behind. It may be called more than once.
	Close(ctx context.Context) error
}

// A Stateful destination keeps a state that belongs with what was delivered: how far each file is written. It travels in Result.State.
type Stateful interface {
	// Restore is called before the first Submit, with the states that were stored last, one for each source (the process that died, this
	// one). What the destination finds out then (a half-written chunk that was completed) goes to record, to be stored before anything is submitted.
	Restore(states [][]byte, record func(state []byte) error) error
}

// A Result says what became of a chunk. The zero value: it was delivered.
type Result struct {
	// Taken says that the error handler took it: handed over, not delivered.
	Taken bool
	// Err is nil or ErrClosed: the chunk was given up, and is still the caller's.
	Err error
	// MaybeRepeated says that the chunk was written to another host too, which did not ack it.
	MaybeRepeated bool
	// State is to be stored together with the completion; nil when there is nothing to store.
	State []byte
	// More says that a State comes with a later chunk of the same source, at once, and is for this chunk too: until that is stored this one is not to be noted as done.
	More bool
}
