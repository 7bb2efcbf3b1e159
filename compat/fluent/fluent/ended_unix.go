// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fluent

import (
	"crypto/tls"
	"net"
	"syscall"
)

// ended reports whether the peer has closed its end and all that it sent before has been read. The goroutine that reads learns of it too, but
// maybe a moment too late for a message that is about to be written.
func ended(nc net.Conn) (is bool) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	err = raw.Control(func(fd uintptr) { // Control, not Read: that would wait for the goroutine that reads
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		is = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	})
	return is || err != nil
}
