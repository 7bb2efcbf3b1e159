// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/needs"
)

// smallDisk mounts a tmpfs of a few pages.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size)
	needs.Have(t, err == nil, "mounting a tmpfs needs root: %v", err)
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFileFull: on a full disk lines wait, and go on where they stopped, in the middle of one, when
// there is room.
func TestFileFull(t *testing.T) {
	dir := smallDisk(t, "256k")
	path, ballast := filepath.Join(dir, "app.jsonl"), filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 100<<10), 0o600))
	var told atomic.Int32
	full := make(chan bool, 1)
	d, err := NewFile(&FileConfig{
		Path: path, MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond,
		Trip: Trip{Report: func(err error) {
			if told.Add(1) == 1 {
				if !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("told %v", err)
				}
				full <- true
			}
		}},
	})
	must(t, err)
	l := newLandings()
	for i := range 20 {
		d.Submit(padded("app", i*100, 100, 10), l.done(t, i)) // 9 KB each
	}
	<-full
	must(t, os.Remove(ballast))
	for i, r := range l.await(20) {
		if r.Err != nil || r.MaybeRepeated {
			t.Errorf("%d: %+v", i, r)
		}
	}
	must(t, d.Close(context.Background()))
	checkLines(t, readAll(t, path), 2000, 10)
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
}

// TestFileCloseCompresses: a compression that takes longer than Close may is given up, which is no
// error.
func TestFileCloseCompresses(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "app-20200101T000000.001.jsonl")
	must(t, os.WriteFile(left, nil, 0o600))
	must(t, os.Truncate(left, 1<<40)) // a hole, which takes minutes to read
	d, err := NewFile(&FileConfig{
		Path:   filepath.Join(dir, "app.jsonl"),
		Rotate: files.Rotation{Size: 1 << 20, Compress: "gzip"},
	})
	must(t, err)
	l := newLandings()
	d.Submit(chunkOf("app", 0, 10), l.done(t, 0))
	l.await(1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(t, d.Close(ctx))
	if found, err := filepath.Glob(left + "*"); err != nil || len(found) != 1 {
		t.Errorf("%q, %v", found, err)
	}
}

// TestFileFullHandler: of a chunk that is half written when the handler takes it, no line stays
// torn, and the next chunk comes behind it.
func TestFileFullHandler(t *testing.T) {
	dir := smallDisk(t, "64k")
	path := filepath.Join(dir, "app.jsonl")
	taken := make(chan *forward.Chunk, 10)
	d, err := NewFile(&FileConfig{Path: path, MinBackoff: time.Millisecond, Trip: Trip{
		Failures: 1,
		HandleError: func(_ error, c *forward.Chunk) error {
			if c.Events < 1000 {
				return errors.New("no")
			}
			taken <- c
			return nil
		},
	}})
	must(t, err)
	l := newLandings()
	d.Submit(padded("app", 0, 1000, 100), l.done(t, 0)) // 180 KB
	if r := l.await(1)[0]; !r.HandedOver || !r.MaybeRepeated {
		t.Errorf("%+v", r)
	}
	if c := <-taken; c.Events != 1000 {
		t.Errorf("%d events", c.Events)
	}
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=10m"))
	d.Submit(padded("app", 1000, 10, 100), l.done(t, 1))
	if r := l.await(2)[1]; r.Err != nil || r.HandedOver {
		t.Errorf("%+v", r)
	}
	must(t, d.Close(context.Background()))
	n, next := 0, 0
	for i := 0; i < 1010; i++ {
		line := lineOf("app", i, 100)
		if rest := readAll(t, path)[n:]; len(rest) >= len(line) && rest[:len(line)] == line {
			n += len(line)
			next++
		}
	}
	if got := readAll(t, path); n != len(got) || next < 300 {
		t.Errorf("%d lines; behind them %.300q", next, got[n:])
	}
}
