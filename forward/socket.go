// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"net"
)

// socket is the connection under a connection of TLS. Package tls keeps what came of a record when a read says that there is no more yet; so reads
// need not wait: while now is set, inside the poller's callback, they return errAgain instead. A connection that waits for its peer then holds no
// buffer of ours, with TLS or without.
type socket struct {
	net.Conn
	fd    uintptr
	now   bool
	bytes int64 // read before now was first set
}

// Read is called by package tls, in the connection's goroutine.
func (s *socket) Read(p []byte) (int, error) {
	if s.now {
		return s.readNow(p)
	}
	n, err := s.Conn.Read(p)
	s.bytes += int64(n)
	return n, err
}

// errAgain says that nothing has come yet. Package tls goes on after errors that are temporary.
var errAgain net.Error = again{}

type again struct{}

func (again) Error() string   { return "forward: nothing has come yet" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }
