// SPDX-License-Identifier: Apache-2.0

package forward

import "context"

// An AsyncHandler is a Handler that finishes chunks later, in any order. The server then calls StartForward in place of ServeForward.
type AsyncHandler interface {
	Handler
	// StartForward takes a chunk and returns soon; done, called from any goroutine, says what came of it: nil when it is stored as promised, an
	// error when it is not. Only the first call of done counts.
	//
	// The chunk and its bytes are lent until done is called, and must not be changed. Acks leave in the order in which a connection's chunks were
	// sent, each after its own done and those of all before it. After an error that chunk is not acked, nor is any later one of the connection,
	// which is closed; what was stored of them comes again, as a repeat.
	StartForward(ctx context.Context, c *Chunk, done func(error))
}
