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

// keysEnd says that readKeys ends with its context.
const keysEnd = true
