// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync"
	"sync/atomic"
)

// counters are those of some connections of an endpoint: several sets, so that connections on
// different cores add to different ones. They do so once a read or less often.
type counters struct {
	accepted, bytes, messages, chunks, events, invalid, skipped, ignored, acks atomic.Uint64
	refused, refusedEvents, large                                              atomic.Uint64
	peerErrors                                                                 [peerErrorKinds]atomic.Uint64
	// What other cores write stands on other cache lines.
	_ [64]byte
}

// countSets is how many sets an endpoint has.
const countSets = 16

// counts are the counters of all endpoints.
type counts struct {
	mu   sync.Mutex
	sets map[*Endpoint]*[countSets]counters
	gone ServerStats // of endpoints that are retired
}

// of returns the counters of a connection of an endpoint.
func (c *counts) of(e *Endpoint, conn uint64) *counters {
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := c.sets[e]
	if sets == nil {
		if c.sets == nil {
			c.sets = make(map[*Endpoint]*[countSets]counters)
		}
		sets = new([countSets]counters)
		c.sets[e] = sets
	}
	return &sets[conn%countSets]
}

// add adds up the counts of an endpoint; nil: those of all.
func (c *counts) add(st *ServerStats, e *Endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e == nil {
		st.Add(&c.gone)
	}
	for of, sets := range c.sets {
		if e != nil && of != e {
			continue
		}
		for i := range sets {
			sets[i].addTo(st)
		}
	}
}

// retire forgets an endpoint, and keeps its counts for those of all.
func (c *counts) retire(e *Endpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := c.sets[e]
	if sets == nil {
		return
	}
	for i := range sets {
		sets[i].addTo(&c.gone)
	}
	delete(c.sets, e)
}

// ServerStats are counts since the server was made, and what is so now.
type ServerStats struct {
	Accepted    uint64 // connections
	Connections int    // open now
	Bytes       uint64 // read
	Messages    uint64 // complete messages, refused ones included
	Chunks      uint64 // handed to the handler; messages without acks are gathered, so there may be fewer than messages
	Events      uint64 // in those chunks
	Invalid     uint64 // entries left out because of a wrong type
	Skipped     uint64 // entries left out because their record is nil
	Large       uint64 // entries set aside because they are larger than MaxEvent
	Ignored     uint64 // values that are no arrays, heartbeats among them
	Refused     uint64 // messages
	// RefusedEvents is how many entries there were in refused messages where all of them were seen:
	// in those refused for an invalid entry, or for what the server would have had to add to them.
	// What is damaged, too large or no log is refused before it can be counted.
	RefusedEvents uint64
	Acks          uint64                 // written
	Memory        int64                  // bytes of buffers held now, by all endpoints together
	PeerErrors    [peerErrorKinds]uint64 // by PeerErrorKind
	_             [0]func()              // not comparable: fields will come
}

// Add adds the counts of other connections. Memory is that of all endpoints, and stays.
func (st *ServerStats) Add(o *ServerStats) {
	st.Accepted += o.Accepted
	st.Connections += o.Connections
	st.Bytes += o.Bytes
	st.Messages += o.Messages
	st.Chunks += o.Chunks
	st.Events += o.Events
	st.Invalid += o.Invalid
	st.Skipped += o.Skipped
	st.Large += o.Large
	st.Ignored += o.Ignored
	st.Refused += o.Refused
	st.RefusedEvents += o.RefusedEvents
	st.Acks += o.Acks
	for k := range o.PeerErrors {
		st.PeerErrors[k] += o.PeerErrors[k]
	}
}

func (c *counters) addTo(st *ServerStats) {
	st.Accepted += c.accepted.Load()
	st.Bytes += c.bytes.Load()
	st.Messages += c.messages.Load()
	st.Chunks += c.chunks.Load()
	st.Events += c.events.Load()
	st.Invalid += c.invalid.Load()
	st.Skipped += c.skipped.Load()
	st.Large += c.large.Load()
	st.Ignored += c.ignored.Load()
	st.Refused += c.refused.Load()
	st.RefusedEvents += c.refusedEvents.Load()
	st.Acks += c.acks.Load()
	for k := range st.PeerErrors {
		st.PeerErrors[k] += c.peerErrors[k].Load()
	}
}
