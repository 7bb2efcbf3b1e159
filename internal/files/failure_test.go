// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// faulty is a kernel in which a write takes left bytes and then fails with err, as long as err is
// set.
type faulty struct {
	left    int
	err     error
	syncErr error
	dirErr  error
	between func(*os.File) // runs after a write that was cut short
}

func (k *faulty) kernel() *kernel {
	return &kernel{
		write: func(f *os.File, b []byte) (int, error) {
			if k.err == nil {
				return f.Write(b)
			}
			n := min(len(b), k.left)
			if n > 0 {
				if _, err := f.Write(b[:n]); err != nil {
					return 0, err
				}
			}
			k.left -= n
			if n == len(b) {
				return n, nil
			}
			if k.between != nil {
				k.between(f)
			}
			return n, &os.PathError{Op: "write", Path: f.Name(), Err: k.err}
		},
		sync:    func(*os.File) error { return k.syncErr },
		syncDir: func(string) error { return k.dirErr },
	}
}

func openSet(t *testing.T, pattern string, state []byte, o *Options) *Set {
	t.Helper()
	s, err := Open(pattern, state, o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func add(t *testing.T, s *Set, tag, line string) {
	t.Helper()
	must(t, extend(s, tag, 0, line))
}

// extend has s take lines, and writes when enough waits.
func extend(s *Set, tag string, sec int64, lines string) error {
	full, err := s.Extend(tag, sec, func(dst []byte) []byte { return append(dst, lines...) })
	if full && err == nil {
		err = s.Write()
	}
	return err
}

// TestWriteCutShort fails a write after any number of bytes, twice, and wants every line once and
// whole afterwards.
func TestWriteCutShort(t *testing.T) {
	lines := []string{"{one}\n", "{two two}\n", "{three}\n"}
	more := "{four}\n"
	all := strings.Join(lines, "") + more
	for first := range len(all) {
		for second := range len(all) - first {
			path := filepath.Join(t.TempDir(), "x")
			k := &faulty{left: first, err: syscall.ENOSPC}
			s := openSet(t, path, nil, &Options{kernel: k.kernel()})
			for _, line := range lines {
				add(t, s, "", line)
			}
			if err := s.Write(); first < len(all)-len(more) && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d: %v", first, err)
			}
			if _, err := s.Sync(); first < len(all)-len(more) && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d: Sync after it: %v", first, err)
			}
			add(t, s, "", more)
			k.left = second
			if err := s.Write(); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%d, %d: %v", first, second, err)
			}
			k.err = nil
			if _, err := s.Sync(); err != nil {
				t.Fatalf("%d, %d: %v", first, second, err)
			}
			if got := string(read(t, path)); got != all {
				t.Fatalf("%d, %d: got %q", first, second, got)
			}
			s.Close()
		}
	}
}

// TestWriteCutShortAmongOthers has others append where a write was cut short: every line of ours is
// there once as a whole, and theirs too.
func TestWriteCutShortAmongOthers(t *testing.T) {
	lines := "{one}\n{two two}\n{three}\n"
	const theirs = "theirs\n" // behind whatever part of a line
	for cut := range len(lines) {
		for _, race := range []bool{false, true} { // between the failure and the next Write, or within the next
			path := filepath.Join(t.TempDir(), "x")
			k := &faulty{left: cut, err: syscall.EIO}
			s := openSet(t, path, nil, &Options{kernel: k.kernel()})
			add(t, s, "", lines)
			if err := s.Write(); !errors.Is(err, syscall.EIO) {
				t.Fatalf("%d: %v", cut, err)
			}
			if race {
				once := false
				s.o.kernel.write = func(f *os.File, b []byte) (int, error) {
					if !once {
						once = true
						appendTo(t, path, theirs)
					}
					return f.Write(b)
				}
			} else {
				appendTo(t, path, theirs)
			}
			k.err = nil
			if _, err := s.Sync(); err != nil {
				t.Fatalf("%d: %v", cut, err)
			}
			got := "\n" + string(read(t, path))
			for line := range strings.Lines(lines + theirs) {
				whole := "\n" + line
				if line == theirs {
					whole = line
				}
				if n := strings.Count(got, whole); n != 1 {
					t.Fatalf("%d, %v: %q is there %d times: %q", cut, race, line, n, got)
				}
			}
			if !strings.HasSuffix(got, "\n") {
				t.Fatalf("%d: %q", cut, got)
			}
			s.Close()
		}
	}
}

// TestOneFails wants the lines of other files written when one file cannot be.
func TestOneFails(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "b"), 0o755))
	s := openSet(t, filepath.Join(dir, "{tag}"), nil, nil)
	add(t, s, "a", "1\n")
	add(t, s, "b", "2\n")
	add(t, s, "c", "3\n")
	for range 2 {
		err := s.Write()
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "b")) {
			t.Fatalf("error %v", err)
		}
	}
	if got := string(read(t, filepath.Join(dir, "a"))) + string(read(t, filepath.Join(dir, "c"))); got != "1\n3\n" {
		t.Fatalf("got %q", got)
	}
	if _, err := s.Sync(); err == nil {
		t.Fatal("Sync with a line that waits")
	}
	must(t, os.Remove(filepath.Join(dir, "b")))
	if _, err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, filepath.Join(dir, "b"))); got != "2\n" {
		t.Fatalf("got %q", got)
	}
}

// TestFull wants Extend to ask for a Write as long as a file has more than Buffer, or all have more
// than Memory.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	k := &faulty{}
	s := openSet(t, filepath.Join(dir, "{tag}"), nil, &Options{kernel: k.kernel(), Memory: 4000, Buffer: 500})
	line := strings.Repeat("x", 99) + "\n"
	render := func(dst []byte) []byte { return append(dst, line...) }
	for _, tt := range []struct {
		name     string
		tags     int
		wantFull int // after so many lines
	}{
		{"one file", 1, 5},
		{"many files", 100, 4}, // each counts as fileCost and its line
	} {
		k.err = syscall.ENOSPC
		n := 0
		for full := false; !full; n++ {
			if n > 20 {
				t.Fatalf("%s: never full", tt.name)
			}
			var err error
			full, err = s.Extend(fmt.Sprint(n%tt.tags), 0, render)
			must(t, err)
		}
		if n != tt.wantFull {
			t.Errorf("%s: full after %d lines, want %d", tt.name, n, tt.wantFull)
		}
		if err := s.Write(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if full, err := s.Extend("0", 0, func(dst []byte) []byte { return dst }); !full || err != nil {
			t.Errorf("%s: full %v, %v after a Write that failed", tt.name, full, err)
		}
		k.err = nil
		must(t, s.Write())
		if full, err := s.Extend("0", 0, func(dst []byte) []byte { return dst }); full || err != nil ||
			s.waiting.bytes != 0 {
			t.Errorf("%s: full %v, %v, %d bytes wait after a Write", tt.name, full, err, s.waiting.bytes)
		}
	}
	if got := len(read(t, filepath.Join(dir, "0"))); got != 6*len(line) {
		t.Errorf("%d bytes", got)
	}
}

// TestRecordFails wants not one byte in a file that no state names.
func TestRecordFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	broken := errors.New("broken")
	err := broken
	records := 0
	s := openSet(t, path, nil, &Options{Record: func([]byte) error { records++; return err }})
	add(t, s, "", "1\n")
	for range 2 {
		if err := s.Write(); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		if got := read(t, path); len(got) != 0 {
			t.Fatalf("got %q", got)
		}
	}
	err = nil
	if _, err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, path)); got != "1\n" || records != 3 {
		t.Fatalf("got %q after %d records", got, records)
	}
}

// TestRecordOnce wants one Record for all that is new, and none for what is known.
func TestRecordOnce(t *testing.T) {
	records := 0
	s := openSet(t, filepath.Join(t.TempDir(), "{tag}"), nil,
		&Options{Record: func([]byte) error { records++; return nil }})
	for round := range 3 {
		for i := range 10 {
			add(t, s, fmt.Sprint(i), "1\n")
		}
		must(t, s.Write())
		if round == 1 {
			if _, err := s.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if records != 1 {
		t.Errorf("%d records", records)
	}
}

// TestNoSync: without syncs nothing waits for the disk, nor does the end.
func TestNoSync(t *testing.T) {
	k := &faulty{syncErr: errors.New("a sync"), dirErr: errors.New("a sync of a directory")}
	path := filepath.Join(t.TempDir(), "x")
	s := openSet(t, path, nil, &Options{kernel: k.kernel(), NoSync: true})
	add(t, s, "app", "a line\n")
	must(t, s.Write())
	_, err := s.Sync()
	must(t, err)
	add(t, s, "app", "another\n")
	must(t, s.Write())
	must(t, s.Close())
	if b, err := os.ReadFile(path); err != nil || string(b) != "a line\nanother\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestSyncFails: what the kernel could not bring to the disk is written again by the next Set, in
// its place, though it can be read.
func TestSyncFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	var state []byte
	k := &faulty{}
	o := &Options{kernel: k.kernel(), Record: func(s []byte) error { state = s; return nil }}
	s := openSet(t, path, nil, o)
	add(t, s, "", "{one}\n")
	state, err := s.Sync()
	must(t, err)
	add(t, s, "", "{two}\n")
	k.syncErr = syscall.EIO
	if _, err := s.Sync(); !errors.Is(err, ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	k.syncErr = nil // the kernel tells it once
	if _, err := s.Sync(); !errors.Is(err, ErrSync) {
		t.Fatalf("the second Sync: %v", err)
	}
	if err := extend(s, "", 0, "x\n"); !errors.Is(err, ErrSync) {
		t.Fatalf("Extend: %v", err)
	}
	must(t, s.Close())

	again := map[int64]string{}
	o.kernel.writeAt = func(f *os.File, b []byte, at int64) (int, error) {
		again[at] = string(b)
		return f.WriteAt(b, at)
	}
	s = openSet(t, path, state, o)
	add(t, s, "", "{two}\n")
	state, err = s.Sync()
	must(t, err)
	if got := string(read(t, path)); got != "{one}\n{two}\n" || len(again) != 1 || again[6] != "{two}\n" {
		t.Fatalf("got %q, written again: %q", got, again)
	}
	must(t, s.Close())
	s = openSet(t, path, state, o) // and is trusted again
	add(t, s, "", "{three}\n")
	must(t, s.Write())
	must(t, s.Close())
	s = openSet(t, path, state, o)
	add(t, s, "", "{three}\n")
	must(t, s.Write())
	if got := string(read(t, path)); got != "{one}\n{two}\n{three}\n" || len(again) != 1 {
		t.Fatalf("got %q, written again: %q", got, again)
	}
}

func TestSyncDirFails(t *testing.T) {
	k := &faulty{dirErr: syscall.EIO}
	s := openSet(t, filepath.Join(t.TempDir(), "x"), nil, &Options{kernel: k.kernel()})
	add(t, s, "", "1\n")
	for range 2 {
		if _, err := s.Sync(); !errors.Is(err, ErrSync) || !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		k.dirErr = nil
	}
}

// TestSyncDirCannotOpen: a directory that cannot be opened, for want of a descriptor, is no disk
// that fails. It is tried again.
func TestSyncDirCannotOpen(t *testing.T) {
	k := &faulty{dirErr: &os.PathError{Op: "open", Path: "dir", Err: syscall.EMFILE}}
	path := filepath.Join(t.TempDir(), "x")
	s := openSet(t, path, nil, &Options{kernel: k.kernel()})
	add(t, s, "", "1\n")
	for range 2 {
		if _, err := s.Sync(); !errors.Is(err, syscall.EMFILE) || errors.Is(err, ErrSync) {
			t.Fatal(err)
		}
	}
	k.dirErr = nil
	_, err := s.Sync()
	must(t, err)
	add(t, s, "", "2\n")
	_, err = s.Sync()
	must(t, err)
	if got := string(read(t, path)); got != "1\n2\n" {
		t.Errorf("got %q", got)
	}
}

// TestEvictionSyncs wants a file synced before it is closed to make room.
func TestEvictionSyncs(t *testing.T) {
	synced := map[string]int{}
	k := (&faulty{}).kernel()
	k.sync = func(f *os.File) error {
		synced[filepath.Base(f.Name())] = len(read(t, f.Name()))
		return nil
	}
	s := openSet(t, filepath.Join(t.TempDir(), "{tag}"), nil, &Options{kernel: k, MaxOpen: 1})
	add(t, s, "a", "1\n")
	must(t, s.Write())
	add(t, s, "b", "22\n")
	must(t, s.Write())
	if synced["a"] != 2 || synced["b"] != 0 {
		t.Errorf("synced %v", synced)
	}
	_, err := s.Sync()
	must(t, err)
	if synced["b"] != 3 {
		t.Errorf("synced %v", synced)
	}
}

// TestSyncCoversFound wants lines that a dead process wrote synced before a state says that they
// are there.
func TestSyncCoversFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var state []byte
	synced := 0
	k := (&faulty{}).kernel()
	k.sync = func(*os.File) error { synced++; return nil }
	o := &Options{kernel: k, Record: func(s []byte) error { state = bytes.Clone(s); return nil }}
	s := openSet(t, path, nil, o)
	add(t, s, "", "1\n")
	must(t, s.Write())
	must(t, s.Close())
	s = openSet(t, path, state, o)
	add(t, s, "", "1\n")
	if _, err := s.Sync(); err != nil || synced != 1 {
		t.Fatalf("%v, synced %d times", err, synced)
	}
	if got := string(read(t, path)); got != "1\n" {
		t.Fatalf("got %q", got)
	}
}
