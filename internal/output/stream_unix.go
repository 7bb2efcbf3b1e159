// SPDX-License-Identifier: Apache-2.0

//go:build unix

package output

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stdio writes to a file by its descriptor: os.File ends the process when standard output is a
// broken pipe. It neither makes the descriptor blocking nor the contrary, for it may be shared with
// other processes.
type stdio struct {
	file *os.File
	conn syscall.RawConn
}

func newStdio(f *os.File) io.Writer {
	conn, err := f.SyscallConn()
	if err != nil {
		return f
	}
	return &stdio{f, conn}
}

func (s *stdio) Write(b []byte) (n int, err error) {
	if e := s.conn.Control(func(fd uintptr) {
		for {
			n, err = unix.Write(int(fd), b)
			if !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}); e != nil {
		return 0, e
	}
	if err != nil {
		return max(n, 0), &os.PathError{Op: "write", Path: s.file.Name(), Err: err}
	}
	return n, nil
}

// await waits until something can be written, or for d.
func (s *stdio) await(d time.Duration) {
	_ = s.conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		_, _ = unix.Poll(p, int(d.Milliseconds())) // whatever the answer, the next write says more
	})
}

// isFull reports whether a write failed only because the descriptor does not block.
func isFull(err error) bool { return errors.Is(err, unix.EAGAIN) }

func isTerminal(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	terminal := false
	_ = conn.Control(func(fd uintptr) {
		_, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		terminal = err == nil
	})
	return terminal
}
