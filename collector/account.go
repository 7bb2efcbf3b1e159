// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"maps"
	"sync/atomic"

	"github.com/spillwaylog/spillway/forward"
)

// An account is what became of the chunks of one input, by its name: an input that is changed, or
// added again, has the account that it had. The store adds to it, from many goroutines.
type account struct {
	name     string            // of the input, or its URL
	url      string            // with the port that was really taken; guarded by Collector.mu
	endpoint *forward.Endpoint // while the input is opened, if it has one

	past       Received            // of inputs that have ended; guarded by Collector.mu
	pastServer forward.ServerStats // the same, of Forward inputs

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

// books are the accounts of all inputs that there are or were. They are exchanged as a whole.
type books struct {
	accounts []*account
	doors    map[*forward.Endpoint]*account // of Forward inputs, until their last connection has ended
}

// accountOf is the account of the input that a sender came by.
func (s *store) accountOf(sender *forward.Sender) *account {
	b := s.books.Load()
	if sender != nil {
		if a := b.doors[sender.Endpoint]; a != nil {
			return a
		}
	}
	return b.accounts[0]
}

// storedOfAll is how many events all inputs together have stored.
func (s *store) storedOfAll() (n int64) {
	for _, a := range s.books.Load().accounts {
		n += a.stored.events.Load()
	}
	return n
}

// withoutDoor is a copy of doors without one.
func withoutDoor(doors map[*forward.Endpoint]*account, e *forward.Endpoint) map[*forward.Endpoint]*account {
	doors = maps.Clone(doors)
	delete(doors, e)
	return doors
}
