// SPDX-License-Identifier: Apache-2.0

package forward

// Stats returns the counts of all endpoints together.
func (s *Server) Stats() ServerStats {
	s.init()
	st := ServerStats{Memory: s.mem.Used(), Connections: s.count(nil)}
	s.counts.add(&st, nil)
	return st
}

// EndpointStats returns the counts of the connections that came by one endpoint: the pointer given
// to ServeEndpoint, or &s.Endpoint for Serve.
func (s *Server) EndpointStats(e *Endpoint) ServerStats {
	s.init()
	st := ServerStats{Memory: s.mem.Used(), Connections: s.count(e)}
	s.counts.add(&st, e)
	return st
}

// Retire returns the counts of an endpoint for the last time, and forgets it; those of all
// endpoints together still have them. It is for one that ShutdownEndpoint has ended.
func (s *Server) Retire(e *Endpoint) ServerStats {
	st := s.EndpointStats(e)
	s.counts.retire(e)
	s.forget(e)
	return st
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
