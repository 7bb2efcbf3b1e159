// SPDX-License-Identifier: Apache-2.0

package forward

import "sync/atomic"

// counters are a server's. Connections add to them, once a read or less often.
type counters struct {
	accepted, bytes, messages, chunks, events, invalid, skipped, ignored, acks atomic.Uint64
	refused                                                                    atomic.Uint64
	troubles                                                                   [troubleKinds]atomic.Uint64
}

// ServerStats are counts since the server was made, and what is so now.
type ServerStats struct {
	Accepted    uint64               // connections
	Connections int                  // open now
	Bytes       uint64               // read
	Messages    uint64               // complete messages, refused ones included
	Chunks      uint64               // handed to the handler; messages without acks are gathered, so there may be fewer than messages
	Events      uint64               // in those chunks
	Invalid     uint64               // entries left out because of a wrong type
	Skipped     uint64               // entries left out because their record is nil
	Ignored     uint64               // values that are no arrays, heartbeats among them
	Refused     uint64               // messages
	Acks        uint64               // written
	Memory      int64                // bytes of buffers held now
	Troubles    [troubleKinds]uint64 // by TroubleKind
	_           [0]func()            // not comparable: fields will come
}

// Stats returns the counts.
func (s *Server) Stats() ServerStats {
	s.init()
	c := &s.counters
	st := ServerStats{
		Accepted: c.accepted.Load(), Bytes: c.bytes.Load(), Messages: c.messages.Load(), Chunks: c.chunks.Load(), Events: c.events.Load(),
		Invalid: c.invalid.Load(), Skipped: c.skipped.Load(), Ignored: c.ignored.Load(), Refused: c.refused.Load(), Acks: c.acks.Load(),
		Memory: s.mem.used.Load(),
	}
	for k := range st.Troubles {
		st.Troubles[k] = c.troubles[k].Load()
	}
	s.mu.Lock()
	st.Connections = len(s.conns)
	s.mu.Unlock()
	return st
}
