// SPDX-License-Identifier: Apache-2.0

//go:build unix

package forward

import (
	"io"
	"os"
	"syscall"
)

// readFD reads from a socket without waiting.
func readFD(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, errAgain
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// unreadOf tells whether there are bytes in a socket, or its end, that were not read yet.
func unreadOf(raw syscall.RawConn) (yes bool) {
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		yes = err == nil
	})
	return err == nil && yes
}
