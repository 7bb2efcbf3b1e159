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
