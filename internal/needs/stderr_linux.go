// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// goStderr is the standard error of the go command that runs this binary; nil where none does, or
// it cannot be had. Best is the go command's own descriptor, which shares its place in a file.
// Where the kernel refuses that (Yama does, for parents), it is opened anew, but for a file whose
// writer does not append: there the two would write over each other.
func goStderr() io.WriteCloser {
	parent := os.Getppid()
	if name, err := os.ReadFile(proc(parent, "comm")); err != nil || string(bytes.TrimSpace(name)) != "go" {
		return nil
	}
	if process, err := unix.PidfdOpen(parent, 0); err == nil {
		defer unix.Close(process) //nolint:errcheck // nothing was written to it
		if fd, err := unix.PidfdGetfd(process, 2, 0); err == nil {
			return os.NewFile(uintptr(fd), "stderr of the go command")
		}
	}
	name := proc(parent, "fd/2")
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() && !appends(proc(parent, "fdinfo/2")) {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return f
}

func proc(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// appends reads what the kernel says about a descriptor: "flags:" and an octal number.
func appends(fdinfo string) bool {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if number, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			flags, err := strconv.ParseUint(string(bytes.TrimSpace(number)), 8, 64)
			return err == nil && flags&unix.O_APPEND != 0
		}
	}
	return false
}

// summarised tells whether the go command tests the whole workspace, at whose end [Summary] is.
func summarised() bool {
	line, err := os.ReadFile(proc(os.Getppid(), "cmdline"))
	return err == nil && slices.ContainsFunc(bytes.Split(line, []byte{0}),
		func(arg []byte) bool { return string(arg) == "work" })
}

// siblings counts the other processes that the go command has started and that have not ended:
// tests, compilers, linkers.
func siblings() (n int) {
	parent, self := strconv.Itoa(os.Getppid()), os.Getpid()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == self {
			continue
		}
		stat, err := os.ReadFile(proc(pid, "stat"))
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain anything. Behind it stand the state and the parent.
		if f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]); len(f) > 1 && string(f[1]) == parent &&
			string(f[0]) != "Z" {
			n++
		}
	}
	return n
}
