// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"net"
	"time"
)

// heartbeatMost is the largest datagram that is answered.
const heartbeatMost = 128

// ServeHeartbeat answers UDP heartbeats: one byte 00 to the sender of any datagram of at most 128 bytes (docs/forward.md rule 41). It returns
// ErrServerClosed after Shutdown or Close, any other error is that of the socket. It closes pc.
func (s *Server) ServeHeartbeat(pc net.PacketConn) error {
	s.init()
	if !s.listen(pc) {
		return ErrServerClosed
	}
	defer s.unlisten(pc)
	buf := make([]byte, heartbeatMost+1)
	answer := []byte{0}
	for failures := 0; ; {
		n, from, err := pc.ReadFrom(buf)
		switch {
		case err == nil:
			failures = 0
			if n <= heartbeatMost {
				_, _ = pc.WriteTo(answer, from) // a heartbeat that is lost is what heartbeats are for
			}
		case s.down.Load():
			return ErrServerClosed
		case errors.Is(err, net.ErrClosed) || failures > 100:
			return err
		default: // an ICMP answer to an earlier datagram, a datagram that is too long on some systems
			failures++
			select {
			case <-time.After(time.Duration(failures) * time.Millisecond):
			case <-s.stop:
			}
		}
	}
}
