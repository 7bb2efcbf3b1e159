// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package forward

// initRaw leaves the connection to be read through its interface.
func (*conn) initRaw() {}

// readNow is never called: nothing sets now.
func (s *socket) readNow(p []byte) (int, error) { return s.Conn.Read(p) }

// unread cannot tell.
func (*conn) unread() bool { return false }
