// SPDX-License-Identifier: Apache-2.0

package forward

import "context"

// A Handler stores chunks.
type Handler interface {
	// ServeForward returns nil when the chunk is stored as promised; only then, and if the chunk
	// has an id, its ack goes out. After an error no ack is written and the connection is closed,
	// so that the client sends the chunk again elsewhere or later.
	//
	// The chunk and its bytes are lent: they are valid until ServeForward returns, and must not be
	// changed. It is never empty: chunks that have no events left are acked without being handed
	// on. One connection's chunks come one after another in the order in which they were sent,
	// those of different connections at the same time. ServeForward may block: meanwhile nothing
	// more is read from that connection. It returns soon after ctx is done, which happens when the
	// server is closed or its Shutdown runs out of time.
	ServeForward(ctx context.Context, c *Chunk) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, c *Chunk) error

// ServeForward calls f.
func (f HandlerFunc) ServeForward(ctx context.Context, c *Chunk) error { return f(ctx, c) }

// A GroupHandler is a Handler that takes together what arrived together, and tells later when it is
// stored. The server then calls ServeGroup in place of ServeForward.
type GroupHandler interface {
	Handler
	// ServeGroup takes the chunks that one read of a connection completed, at least one. It may
	// block, as ServeForward may. When it returns, slice, chunks and bytes are lent no longer. An
	// error: none of them is acked, and the connection is closed.
	//
	// wait returns nil when all of them are stored as promised: then their acks go out, in order,
	// in one write. Its error has the same consequences as that of ServeGroup. A nil wait says that
	// all is stored already, or that no chunk has an id. While the server waits, in another
	// goroutine, it goes on reading, so there are several groups of a connection on their way; it
	// waits for them in order.
	//
	// With a ctx that is done already, wait is a question: it returns nil if all is stored, any
	// error if not yet, and soon. The server asks so to let acks leave together; it calls wait
	// again after that.
	ServeGroup(ctx context.Context, chunks []*Chunk) (wait func(ctx context.Context) error, err error)
}

// An AsyncHandler is a Handler that finishes chunks later, in any order. The server then calls
// StartForward in place of ServeForward, unless the Handler is a GroupHandler too.
type AsyncHandler interface {
	Handler
	// StartForward takes a chunk and returns soon; done, called from any goroutine, StartForward's
	// own included, says what came of it: nil when it is stored as promised, an error when it is
	// not. Only the first call of done counts.
	//
	// The chunk and its bytes are lent until done is called, and must not be changed. Acks leave in
	// the order in which a connection's chunks were sent, each after its own done and those of all
	// before it. After an error that chunk is not acked, nor is any later one of the connection,
	// which is closed; what was stored of the later ones comes again. A connection has at most
	// MaxInFlight chunks with the handler, and an eighth of Server.Memory: beyond it nothing more
	// is read from it.
	//
	// ctx is done when the server is closed or its Shutdown runs out of time. Shutdown waits for
	// done; Close does not, for nothing is acked any more.
	StartForward(ctx context.Context, c *Chunk, done func(error))
}

// A LargeEvent is one that is larger than Server.MaxEvent. Its bytes are lent.
type LargeEvent struct {
	Chunk *Chunk // whose it is: tag and id; its entries are not there
	Index int    // among the large events of its chunk
	Entry []byte // packed, as it came; without its end if it is larger than 64 MiB: then these are its first 64 KiB
	Size  int64  // of the whole, in bytes
	Sec   int64  // the event's time, as in Entry
	Nsec  uint32
}

// Whole says whether all of the event is there.
func (e *LargeEvent) Whole() bool { return int64(len(e.Entry)) == e.Size }
