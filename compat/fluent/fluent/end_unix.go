// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fluent

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"
)

// endOf returns a function that reports whether the peer has closed its end and all that it sent
// before has been read. The goroutine that reads learns of it too, but maybe a moment too late for
// a message that is about to be written. The function is for one goroutine at a time, and allocates
// nothing as a rule. If the peer is quiet, as one is that need not ack, and has said something all
// the same, it waits until that is read.
func endOf(nc net.Conn) func(quiet bool) bool {
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
	var ended, unread bool
	look := func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EWOULDBLOCK &&
			err != syscall.EINTR
		unread = n > 0
	}
	return func(quiet bool) bool {
		for range looks {
			if raw.Control(look) != nil || ended { // Control, not Read: that would wait for the goroutine that reads
				return true
			}
			if !quiet || !unread {
				break
			}
			<-time.After(50 * time.Microsecond) // it will be TLS saying goodbye, and the end behind it
		}
		return false
	}
}

// looks is how often the goroutine that reads gets a chance to read what has come.
const looks = 1000

func never(bool) bool { return false }
