// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fluent

import (
	"crypto/tls"
	"net"
	"syscall"
)

// endOf returns a function that reports whether the peer has closed its end and all that it sent before has been read. The goroutine that reads learns of
// it too, but maybe a moment too late for a message that is about to be written. The function is for one goroutine at a time, and allocates nothing.
func endOf(nc net.Conn) func() bool {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return never
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return never
	}
	var ended bool
	look := func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	}
	return func() bool {
		return raw.Control(look) != nil || ended // Control, not Read: that would wait for the goroutine that reads
	}
}

func never() bool { return false }
