// SPDX-License-Identifier: Apache-2.0

//go:build unix

package output

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStreamPipe: a descriptor that does not block, and is full most of the time.
func TestStreamPipe(t *testing.T) {
	for _, nonblock := range []bool{false, true} {
		var fds [2]int
		must(t, unix.Pipe(fds[:]))
		must(t, unix.SetNonblock(fds[1], nonblock))
		r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
		d := NewStream(w, nil)
		got := make(chan string)
		go func() {
			b, _ := io.ReadAll(r)
			got <- string(b)
		}()
		deliverAll(t, d, 20, 100, 1000)
		must(t, d.Close(context.Background()))
		must(t, w.Close())
		checkLines(t, <-got, 2000, 1000)
		must(t, r.Close())
	}
}

// TestStreamPieces: several processes' lines on one pipe do not mix, for each write is taken as a
// whole.
func TestStreamPieces(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	a, b := NewStream(w, nil), NewStream(w, nil)
	lines := make(chan int)
	go func() {
		n := 0
		for s := bufio.NewScanner(r); s.Scan(); n++ {
			if line := s.Text(); !strings.HasPrefix(line, `{"time":`) || !strings.HasSuffix(line, `"}`) ||
				strings.Count(line, "time") != 1 {
				t.Errorf("mixed: %q", line)
			}
		}
		lines <- n
	}()
	both := make(chan bool)
	for _, d := range []Output{a, b} {
		go func() {
			deliverAll(t, d, 50, 100, 300)
			both <- true
		}()
	}
	<-both
	<-both
	must(t, a.Close(context.Background()))
	must(t, b.Close(context.Background()))
	must(t, w.Close())
	if n := <-lines; n != 10_000 {
		t.Errorf("%d lines", n)
	}
	must(t, r.Close())
}

// TestStreamEPIPE: nobody reads, and then somebody does.
func TestStreamEPIPE(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(path, 0o600))
	r, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	defer w.Close()
	must(t, r.Close())
	var broken atomic.Int32
	told := make(chan bool, 1)
	d := NewStream(w, &StreamConfig{MinBackoff: time.Millisecond, Trip: Trip{Report: func(err error) {
		if errors.Is(err, syscall.EPIPE) && broken.Add(1) == 1 {
			told <- true
		}
	}}})
	delivered := make(chan bool)
	go func() {
		deliverAll(t, d, 3, 10, 10)
		delivered <- true
	}()
	<-told
	r, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer r.Close()
	<-delivered
	must(t, d.Close(context.Background()))
	b := make([]byte, 1<<16)
	n, err := r.Read(b)
	must(t, err)
	checkLines(t, string(b[:n]), 30, 10)
	if broken.Load() != 1 {
		t.Errorf("told %d times", broken.Load())
	}
}

// TestStreamFull: Close gives up on a pipe that is full and does not block.
func TestStreamFull(t *testing.T) {
	var fds [2]int
	must(t, unix.Pipe(fds[:]))
	must(t, unix.SetNonblock(fds[1], true))
	r, w := os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	defer r.Close()
	defer w.Close()
	d := NewStream(w, nil)
	given := make(chan Result, 1)
	c := chunkOf("app", 0, 0)
	for i := range 2000 {
		c.Entries = appendEntry(c.Entries, i, 1000)
	}
	d.Submit(c, func(r Result) { given <- r })
	b := make([]byte, 1)
	_, err := r.Read(b) // it has begun
	must(t, err)
	must(t, d.Close(context.Background()))
	if r := <-given; !errors.Is(r.Err, ErrClosed) {
		t.Errorf("%+v", r)
	}
}
