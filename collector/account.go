// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"sync/atomic"

	"github.com/spillwaylog/spillway/forward"
)

// An account is what became of the chunks of one input. The store adds to it,
// from many goroutines.
type account struct {
	name     string            // of the input, or its URL
	url      string            // with the port that was really taken
	endpoint *forward.Endpoint // nil for an input of another package

	stored, repeated, refused tally

	// What came by a sink: a forward.Server counts itself.
	arrived   tally
	malformed atomic.Int64 // chunks that are none
	oversize  atomic.Int64 // events set aside
}

// A tally counts chunks and the events in them.
type tally struct{ events, chunks atomic.Int64 }

func (t *tally) add(c *forward.Chunk) {
	t.events.Add(int64(c.Events))
	t.chunks.Add(1)
}

func (a *account) counts() Counts {
	return Counts{
		Stored: a.stored.events.Load(), StoredChunks: a.stored.chunks.Load(),
		Repeated: a.repeated.events.Load(), RepeatedChunks: a.repeated.chunks.Load(),
		Refused: a.refused.events.Load(), RefusedChunks: a.refused.chunks.Load(),
	}
}

// accountOf is the account of the input that a sender came by.
func (s *store) accountOf(sender *forward.Sender) *account {
	if sender != nil {
		for _, a := range s.accounts { // few
			if a.endpoint == sender.Endpoint {
				return a
			}
		}
	}
	return s.accounts[0]
}
