// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/codes"
)

// FuzzFound puts any bytes behind the committed length: they stay as they are, and the lines that
// come again are all in the file, whole and in order, however they are split over Writes.
func FuzzFound(f *testing.F) {
	const old = "{old}\n"
	lines := []string{"{a}\n", "{bb}\n", "{a}\n", "{ccc}\n"}
	for _, tail := range []string{
		"", "{", "{a}", "{a}\n", "{a}\n{bb}\n{a}\n{ccc}\n", "{a}\n{bb}\n{x", "\n", "{a}\n{a}\n",
		"{a}\n{bb}\n{a}\n{ccc}\n{a}\n", "{a}\r\n",
		"\x00", "\x00\x00\x00\x00\x00\x00", "{a\x00\x00{bb}", "{\x00x", "{a}\n\x00\x00\x00\x00\x00{a}\n",
		strings.Repeat("\x00", 19),
	} {
		f.Add([]byte(tail), uint8(0b101))
	}
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, tail []byte, writes uint8) {
		before := append([]byte(old), tail...)
		must(t, os.WriteFile(path, before, 0o644))
		id, _, err := idAt(path)
		must(t, err)
		state := appendState(nil, &state{
			writers: []identity{{}},
			entries: []entry{{path: path, inode: id.inode, length: int64(len(old))}},
		})
		k := (&faulty{}).kernel()
		s, err := Open(path, state, &Options{kernel: k})
		must(t, err)
		defer s.Close()
		for i, line := range lines {
			add(t, s, "", line)
			if writes>>i&1 != 0 {
				must(t, s.Write())
			}
		}
		state, err = s.Sync()
		must(t, err)
		after := read(t, path)
		if len(after) < len(before) {
			t.Fatalf("harmed: %q became %q", before, after)
		}
		for i, c := range before { // NULs are written over
			if c != 0 && after[i] != c {
				t.Fatalf("harmed: %q became %q", before, after)
			}
		}
		if len(bytes.Trim(tail, "\x00")) == 0 && len(tail) <= len(strings.Join(lines, "")) &&
			string(after) != old+strings.Join(lines, "") {
			t.Fatalf("NULs are left, or lines behind them: %q became %q", before, after)
		}
		next := 0
		for line := range strings.Lines(string(after[len(old):])) {
			if next < len(lines) && line == lines[next] {
				next++
			}
		}
		if next < len(lines) {
			t.Fatalf("%q: line %d is lost: %q", before, next, after)
		}
		if all := strings.Join(lines, ""); strings.HasPrefix(all, string(tail)) && string(after) != old+all {
			t.Fatalf("%q: written again: %q", before, after)
		}
		if got, err := parseState(state); err != nil || len(got.entries) != 1 ||
			got.entries[0].length > int64(len(after)) {
			t.Fatalf("%v, %v", got.entries, err)
		}
	})
}

// TestLineLost: a line that stands in the file and does not come again, since the journal lost it,
// has those behind it written again, and the message says that it may be so.
func TestLineLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var state []byte
	var told []error
	o := &Options{
		Record: func(s []byte) error { state = s; return nil },
		Report: func(err error) { told = append(told, err) },
	}
	s := openSet(t, path, nil, o)
	add(t, s, "", "{one}\n")
	state, err := s.Sync()
	must(t, err)
	for _, line := range []string{"{lost}\n", "{three}\n"} {
		add(t, s, "", line)
		must(t, s.Write())
	}
	must(t, s.Close())

	s = openSet(t, path, state, o)
	for _, line := range []string{"{three}\n", "{four}\n"} {
		add(t, s, "", line)
	}
	_, err = s.Sync()
	must(t, err)
	must(t, s.Close())
	if got := string(read(t, path)); got != "{one}\n{lost}\n{three}\n{three}\n{four}\n" {
		t.Errorf("got %q", got)
	}
	if len(told) != 1 || codes.Of(told[0], "") != codes.FileForeign || !strings.Contains(told[0].Error(), "lost") {
		t.Errorf("told %v", told)
	}
}

// TestSyncLoses has a sync fail and the kernel lose any piece of what it had not written, so that
// NULs stand there or the file ends: each line is in the file once, in its place.
func TestSyncLoses(t *testing.T) {
	lines := []string{"{two}\n", "{three}\n", "{four}\n"}
	want := "{one}\n" + strings.Join(lines, "")
	path := filepath.Join(t.TempDir(), "x")
	for from := len("{one}\n"); from < len(want); from++ {
		for to := from + 1; to <= len(want)+1; to++ { // the last one stands for the end of the file
			for _, whole := range []bool{false, true} { // the next Set has all lines at once
				must(t, os.RemoveAll(path))
				var state []byte
				k := &faulty{}
				o := &Options{kernel: k.kernel(), Record: func(s []byte) error { state = s; return nil }}
				s := openSet(t, path, nil, o)
				add(t, s, "", "{one}\n")
				state, err := s.Sync()
				must(t, err)
				for _, line := range lines {
					add(t, s, "", line)
				}
				k.syncErr = syscall.EIO
				if _, err := s.Sync(); !errors.Is(err, ErrSync) {
					t.Fatal(err)
				}
				k.syncErr = nil // the kernel tells it once
				must(t, s.Close())
				b := read(t, path)
				if to > len(want) {
					b = b[:from]
				} else {
					clear(b[from:to])
				}
				overwrite(t, path, b)

				s = openSet(t, path, state, o)
				for _, line := range lines {
					add(t, s, "", line)
					if !whole {
						must(t, s.Write())
					}
				}
				_, err = s.Sync()
				must(t, err)
				must(t, s.Close())
				if got := string(read(t, path)); got != want {
					t.Fatalf("lost %d to %d: got %q", from, to, got)
				}
			}
		}
	}
}
