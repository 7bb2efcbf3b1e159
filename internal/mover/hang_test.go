// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// seam is the operating system, whose writes and syncs hang or fail when told to.
type seam struct {
	mu   sync.Mutex
	hang chan struct{} // not nil: writing waits until it is closed
	fail error
	make error // of new files
	read bool  // reading does as writing
}

func (s *seam) pass() error {
	s.mu.Lock()
	hang, err := s.hang, s.fail
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return err
}

func (s *seam) set(hang chan struct{}, err error) {
	s.mu.Lock()
	s.hang, s.fail, s.make, s.read = hang, err, nil, false
	s.mu.Unlock()
}

// reading has reading do as writing.
func (s *seam) reading() {
	s.mu.Lock()
	s.read = true
	s.mu.Unlock()
}

type nothing struct{}

func (nothing) Close() error { return nil }

func (s *seam) MkdirAll(dir string) error           { return os.MkdirAll(dir, 0o700) }
func (s *seam) Lock(string) (io.Closer, error)      { return nothing{}, nil }
func (s *seam) Rename(a, b string) error            { return os.Rename(a, b) }
func (s *seam) Remove(path string) error            { return os.Remove(path) }
func (s *seam) SyncDir(string) error                { return nil }
func (s *seam) Open(p string) (journal.File, error) { return s.open(p, 0) }

func (s *seam) Create(p string) (journal.File, error) {
	s.mu.Lock()
	err := s.make
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return s.open(p, os.O_CREATE|os.O_EXCL)
}

func (s *seam) open(p string, flag int) (journal.File, error) {
	f, err := os.OpenFile(p, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	return &seamFile{f, s}, nil
}

func (s *seam) ReadDir(dir string) ([]journal.DirEntry, error) {
	all, err := os.ReadDir(dir)
	var entries []journal.DirEntry
	for _, e := range all {
		entries = append(entries, journal.DirEntry{Name: e.Name(), Regular: e.Type().IsRegular()})
	}
	return entries, err
}

type seamFile struct {
	*os.File
	s *seam
}

func (f *seamFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.s.pass(); err != nil {
		return 0, err
	}
	return f.File.WriteAt(b, off)
}

func (f *seamFile) ReadAt(b []byte, off int64) (int, error) {
	f.s.mu.Lock()
	does := f.s.read
	f.s.mu.Unlock()
	if does {
		if err := f.s.pass(); err != nil {
			return 0, err
		}
	}
	return f.File.ReadAt(b, off)
}

func (f *seamFile) Datasync() error {
	if err := f.s.pass(); err != nil {
		return err
	}
	return f.Sync()
}

func (f *seamFile) Allocate(size int64) error {
	if err := f.s.pass(); err != nil {
		return err
	}
	if n, err := f.Size(); err != nil || n >= size {
		return err
	}
	return f.Truncate(size)
}

func (f *seamFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// A disk that hangs makes no call wait: appends are refused when the ring is full, Flush and Close
// return by their contexts, and Close names what hangs.
func TestDiskHangs(t *testing.T) {
	d := &fake{answer: later}
	s := &seam{}
	f := open(t, d, func(c *Config) { c.Dir, c.fs = t.TempDir(), s })
	f.must("a", 1, 0, 700, 1000)
	eventually(t, "spilling", func() bool { return f.m.Stats().Spilled > 0 })
	hang := make(chan struct{})
	s.set(hang, nil)
	n := uint32(700)
	refused := 0
	for ; refused < 100; n++ {
		if err := f.post("a", 1, n, 1000); errors.Is(err, ErrFull) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	f.law()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := f.m.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush: %v", err)
	}
	err := f.m.Close(ctx)
	var left *UndeliveredError
	if !errors.As(err, &left) || !strings.Contains(err.Error(), "left behind") {
		t.Errorf("Close: %v", err)
	}
	f.law()
	close(hang)
	<-f.m.disk.rest()
}

// When it no longer hangs everything goes on.
func TestDiskHangsAWhile(t *testing.T) {
	d := &fake{answer: later}
	s := &seam{}
	f := open(t, d, func(c *Config) { c.Dir, c.fs, c.Overflow, c.MaxWait = t.TempDir(), s, Block, time.Minute })
	f.must("a", 1, 0, 700, 1000)
	eventually(t, "spilling", func() bool { return f.m.Stats().Spilled > 0 })
	hang := make(chan struct{})
	s.set(hang, nil)
	time.AfterFunc(50*time.Millisecond, func() {
		d.open()
		s.set(nil, nil)
		close(hang)
	})
	f.must("a", 1, 700, 5000, 1000)
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: 5000})
}

// A full disk is met before anything is written to it; later it has room again.
func TestDiskFull(t *testing.T) {
	for _, early := range []bool{false, true} {
		d := &fake{answer: later}
		s := &seam{}
		f := open(t, d, func(c *Config) { c.Dir, c.fs, c.Overflow, c.MaxWait = t.TempDir(), s, Block, time.Minute })
		if !early {
			f.must("a", 1, 0, 700, 1000)
			eventually(t, "spilling", func() bool { return f.m.Stats().Spilled > 0 })
		}
		s.set(nil, syscall.ENOSPC)
		if early {
			f.must("a", 1, 0, 700, 1000)
		}
		time.AfterFunc(100*time.Millisecond, func() { s.set(nil, nil) })
		f.must("a", 1, 700, 3000, 1000)
		f.law()
		time.AfterFunc(100*time.Millisecond, d.open)
		f.close()
		ordered(t, d.all(), map[uint32]uint32{1: 3000})
	}
}

// scarce is a system that has no more open files for a while.
type scarce struct {
	*seam
	none atomic.Bool
}

func (s *scarce) Open(p string) (journal.File, error) {
	if s.none.Load() {
		return nil, syscall.EMFILE
	}
	return s.seam.Open(p)
}

// The own spill is read when it can be read again, however long that lasts.
func TestNoFiles(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, s := &fake{answer: later}, &scarce{seam: &seam{}}
		f := open(t, d, func(c *Config) { c.Dir, c.fs, c.Overflow, c.MaxWait = dir, s, Block, time.Minute })
		f.must("a", 1, 0, 2000, 1000)
		s.none.Store(true)
		d.open()
		<-time.After(time.Minute)
		f.must("a", 1, 2000, 2010, 1000)
		s.none.Store(false)
		<-time.After(time.Minute)
		f.close()
		ordered(t, d.all(), map[uint32]uint32{1: 2010})
	})
}

// What keeps the disk from taking anything is told now and then, not at each attempt.
func TestErrorIsToldSeldom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) { c.Dir = filepath.Join(file, "a") })
		f.must("a", 1, 0, 700, 1000)
		<-time.After(10*time.Minute + time.Second)
		f.mu.Lock()
		told := strings.Count(fmt.Sprint(f.told), "spilling:")
		f.mu.Unlock()
		if told < 10 || told > 12 {
			t.Errorf("told %d times", told)
		}
		d.open()
		f.close()
	})
}

// A destination whose Close hangs is left behind by name.
func TestDestinationHangs(t *testing.T) {
	d := &fake{answer: later, hang: make(chan struct{})}
	f := open(t, d, nil)
	f.must("a", 1, 0, 10, 10)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := f.m.Close(ctx); err == nil || !strings.Contains(err.Error(), "destination") {
		t.Errorf("Close: %v", err)
	}
	f.law()
	close(d.hang)
	eventually(t, "the end of Close", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.closed })
}

// A mover that did not come back in time lets go of everything when it does, so that a successor
// can take over what is left.
func TestComesBackLate(t *testing.T) {
	mem := shmDir(t)
	called, hang := make(chan struct{}, 1), make(chan struct{})
	d := &fake{}
	f := open(t, d, func(c *Config) {
		c.Shm = mem
		c.Delivered = func(*forward.Chunk) {
			called <- struct{}{}
			<-hang
		}
	})
	f.must("a", 1, 0, 10, 10)
	<-called
	f.must("a", 1, 10, 15, 10)
	var left *UndeliveredError
	err := f.m.Close(within(t, 10*time.Millisecond))
	if !errors.As(err, &left) || !strings.Contains(err.Error(), "left behind") {
		t.Errorf("Close: %v", err)
	}
	close(hang)
	<-f.m.ended
	d.mu.Lock()
	if !d.closed {
		t.Error("the destination is not closed")
	}
	d.mu.Unlock()
	f.law()
	next := &fake{}
	open(t, next, func(c *Config) { c.Shm = mem }).close()
	ordered(t, append(d.all(), next.all()...), map[uint32]uint32{1: 15})
	if names := entriesOf(t, mem); len(names) > 0 {
		t.Errorf("left %q", names)
	}
}
