// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"hash/maphash"
	"net"
	"syscall"
	"time"
)

// maxHeartbeat is the largest datagram that is answered.
const maxHeartbeat = 128

// lowPorts are those of the system's services.
const lowPorts = 1024

// ServeHeartbeat answers UDP heartbeats: one byte 00 to the sender of any datagram of at most 128
// bytes, unless its port is below 1024 or the one of pc, as those of servers are (docs/forward.md
// rule 41). It returns ErrServerClosed after Shutdown or Close, any other error is that of the
// socket. It closes pc.
func (s *Server) ServeHeartbeat(pc net.PacketConn) error {
	s.init()
	if !s.listen(pc) {
		return ErrServerClosed
	}
	defer s.unlisten(pc)
	var answered answers
	buf := make([]byte, 64<<10) // there are systems where it is an error if a datagram is longer
	answer := []byte{0}
	for failures := 0; ; {
		n, from, err := pc.ReadFrom(buf)
		switch {
		case err == nil:
			failures = 0
			if n <= maxHeartbeat && ofClient(from, pc.LocalAddr()) && answered.may(from, s.clock()) {
				_, _ = pc.WriteTo(answer, from) // a heartbeat that is lost is what heartbeats are for
			}
		case s.down.Load():
			return ErrServerClosed
		case bounced(err):
		case errors.Is(err, net.ErrClosed) || failures > 100 && !passing(err):
			return err
		default:
			failures++
			select {
			case <-time.After(time.Duration(min(failures, 1000)) * time.Millisecond):
			case <-s.stop:
			}
		}
	}
}

// maxAnswers is how many heartbeats of one address are answered in a second. A client sends one a
// second; two servers that were made to answer each other stop when one of them does not.
const maxAnswers = 8

// answers counts answers of this second by sender. Senders may share a counter, so that unknown
// peers cannot make it grow.
type answers struct {
	seed   maphash.Seed
	second int64
	counts []uint8
}

// may counts an answer at a time in nanoseconds, and tells whether it may be given.
func (a *answers) may(from net.Addr, now int64) bool {
	if a.counts == nil {
		a.seed, a.counts = maphash.MakeSeed(), make([]uint8, 1<<14)
	}
	if second := now / int64(time.Second); second != a.second {
		a.second = second
		clear(a.counts)
	}
	n := &a.counts[maphash.String(a.seed, from.String())%uint64(len(a.counts))]
	if *n >= maxAnswers {
		return false
	}
	*n++
	return true
}

// ofClient tells whether a datagram may be a client's. A server would answer the answer, and so on
// for ever: an attacker that writes the one's address on a datagram to the other would have begun
// that.
func ofClient(from, own net.Addr) bool {
	f, ok := from.(*net.UDPAddr)
	if !ok {
		return true
	}
	o, ok := own.(*net.UDPAddr)
	return f.Port >= lowPorts && (!ok || f.Port != o.Port)
}

// What Windows says when an answer did not arrive, or would not have.
const (
	wsaNetReset  = syscall.Errno(10052)
	wsaConnReset = syscall.Errno(10054)
)

// bounced tells whether an error is about an answer that could not be delivered. Anybody may cause
// any number of them.
func bounced(err error) bool {
	for _, e := range [...]syscall.Errno{wsaNetReset, wsaConnReset, syscall.ECONNREFUSED, syscall.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
