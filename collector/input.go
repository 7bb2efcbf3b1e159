// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"log/slog"

	"github.com/spillwaylog/spillway/forward"
)

// An Input takes events from somewhere and puts them into a sink.
type Input interface {
	// Run takes events until ctx ends. Then it takes no more, finishes what it has begun, and
	// returns; it has Config.Drain for that, after which the sink takes nothing. Any other return
	// is a failure, which ends the collector.
	Run(ctx context.Context, sink Sink) error
	// Stats is what came in so far. It may be called at any time.
	Stats() Received
}

// A Sink is where an input puts what it takes. Many goroutines may use it.
type Sink interface {
	// Store stores chunks, in their order, which are lent until it returns. It blocks while there
	// is no room; that is the back-pressure. durable waits until the chunks are what an ack
	// promises (Config.Ack): call it before the source is told that they are taken, perhaps once
	// for many. position, if not nil, says to the input where the source stands behind these
	// chunks. It is stored with the last of them, in one record.
	Store(ctx context.Context, chunks []*forward.Chunk, position []byte) (durable func(context.Context) error, err error)
	// Position is what was stored last before the collector was opened; nil if nothing was.
	Position() []byte
}

// Received is what an input counts itself; what it stored the sink counts.
type Received struct {
	Bytes       int64 // read
	Connections int64 // or files, or whatever it reads from, at present
	Skipped     int64 // events without a record
	Invalid     int64 // events left out because they are none
	Refused     int64 // events refused before they were chunks
}

// InputKind understands the URL of an input. It touches nothing yet, so that a mistake in one URL
// is told before anything is opened. What it returns opens the input.
type InputKind func(u *URL, p *Params) (open func(*InputEnv) (Input, error), err error)

// InputEnv is what an input gets from the collector.
type InputEnv struct {
	Name string       // of the input, or its URL
	Log  *slog.Logger // its messages
}
