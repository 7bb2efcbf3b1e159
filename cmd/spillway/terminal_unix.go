// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// inForeground reports whether this process may draw on a terminal: the shell has not put it into
// the background.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	// An error: it is not the terminal of this session, and has no such thing.
	return err != nil || group == unix.Getpgrp()
}

// endSignals end what has a terminal for itself. Interrupt and SIGTERM end the command.
var endSignals = []os.Signal{syscall.SIGHUP, syscall.SIGQUIT}

// notifyResized tells of each change of the terminal's size.
func notifyResized(to chan os.Signal) { signal.Notify(to, syscall.SIGWINCH) }

// keysEnd says that readKeys ends with done.
const keysEnd = true

// keysEvery is how often it looks for done, in milliseconds.
const keysEvery = 100

// readKeys calls key for each byte that comes, until done is closed or nothing more can come.
func readKeys(f *os.File, done <-chan struct{}, key func(byte)) {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for b := make([]byte, 64); ; {
		select {
		case <-done:
			return
		default:
		}
		n, err := unix.Poll(fds, keysEvery)
		if n == 0 || err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		n, err = unix.Read(int(f.Fd()), b)
		if n <= 0 && err != unix.EINTR && err != unix.EAGAIN { // the terminal is gone
			return
		}
		for _, c := range b[:max(n, 0)] {
			key(c)
		}
	}
}
