// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// piecewise writes a line in pieces of so many bytes.
func piecewise(line string, size int) func(io.Writer) error {
	return func(w io.Writer) error {
		for b := []byte(line); len(b) > 0; {
			n := min(size, len(b))
			if _, err := w.Write(b[:n]); err != nil {
				return err
			}
			b = b[n:]
		}
		return nil
	}
}

// TestLong: a long line is in its file once, behind what came before it, wherever a crash has cut
// it.
func TestLong(t *testing.T) {
	long := strings.Repeat("long ", 30_000) + "\n"
	for _, cut := range []int{-1, 0, 1, 1000, 40_000, len(long) - 1, len(long)} {
		path := filepath.Join(t.TempDir(), "x")
		o := &Options{}
		s := openSet(t, path, nil, o)
		add(t, s, "", "1\n")
		state, err := s.Sync()
		must(t, err)
		add(t, s, "", "2\n")
		n, err := s.Long("", 0, piecewise(long, 7000))
		must(t, err)
		if n != int64(len(long)) {
			t.Errorf("%d bytes", n)
		}
		if cut >= 0 {
			must(t, s.Close())
			must(t, os.Truncate(path, int64(4+cut)))
			s = openSet(t, path, state, o)
			add(t, s, "", "2\n")
			n, err := s.Long("", 0, piecewise(long, 5000))
			must(t, err)
			if n != int64(len(long)) {
				t.Errorf("%d bytes", n)
			}
		}
		add(t, s, "", "3\n")
		must(t, s.Write())
		if got := string(read(t, path)); got != "1\n2\n"+long+"3\n" {
			t.Errorf("cut at %d: %d bytes, want %d", cut, len(got), len(long)+6)
		}
	}
}

// TestLongNUL: what a power cut left of a long line as NULs is written over.
func TestLongNUL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	long := strings.Repeat("long ", 30_000) + "\n"
	s := openSet(t, path, nil, nil)
	add(t, s, "", "1\n")
	state, err := s.Sync()
	must(t, err)
	_, err = s.Long("", 0, piecewise(long, 7000))
	must(t, err)
	must(t, s.Close())
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	for _, at := range []int64{2, 33_000, 100_000} {
		_, err = f.WriteAt(make([]byte, 10_000), at)
		must(t, err)
	}
	must(t, f.Close())
	s = openSet(t, path, state, nil)
	_, err = s.Long("", 0, piecewise(long, 7000))
	must(t, err)
	if got := string(read(t, path)); got != "1\n"+long {
		t.Errorf("%d bytes, want %d", len(got), len(long)+2)
	}
}

// TestLongForeignWriter: others' bytes where a long line is expected, or between its pieces, stay,
// and the line is whole behind them.
func TestLongForeignWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	long := strings.Repeat("long ", 30_000) + "\n"
	s := openSet(t, path, nil, nil)
	add(t, s, "", "1\n")
	state, err := s.Sync()
	must(t, err)
	must(t, s.Close())
	foreign := long[:50_000] + "foreign\n"
	appendTo(t, path, foreign)
	s = openSet(t, path, state, nil)
	wrote := 0
	between := func(w io.Writer) error { // the first time somebody writes between two pieces
		wrote++
		if err := piecewise(long[:20_000], 5000)(w); err != nil {
			return err
		}
		if wrote == 2 { // behind the one that compares
			appendTo(t, path, "between\n")
		}
		return piecewise(long[20_000:], 5000)(w)
	}
	_, err = s.Long("", 0, between)
	must(t, err)
	if got, want := string(read(t, path)), "1\n"+foreign+long[:20_000]+"between\n"+long[20_000:25_000]+"\n"+
		long; got != want {
		t.Errorf("%d bytes, want %d: %.200q", len(got), len(want), got[len(foreign)+20_000:])
	}
	if !s.Crowded() {
		t.Error("a crash would repeat the line")
	}
	always := func(w io.Writer) error {
		if err := piecewise(long[:20_000], 5000)(w); err != nil {
			return err
		}
		appendTo(t, path, "between\n")
		return piecewise(long[20_000:], 5000)(w)
	}
	if _, err = s.Long("", 0, always); !errors.Is(err, ErrBetween) {
		t.Errorf("always others: %v", err)
	}
	add(t, s, "", "3\n")
	must(t, s.Write())
	if got := read(t, path); !bytes.HasSuffix(got, []byte("\n3\n")) {
		t.Error("the last line is not whole")
	}
}

// TestLongFull: a long line goes on where a full disk cut it short, or is left as a line that ends
// there.
func TestLongFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	long := strings.Repeat("long ", 30_000) + "\n"
	room := 1 << 30
	k := (&faulty{}).kernel()
	k.write = func(f *os.File, b []byte) (int, error) {
		n, err := f.Write(b[:min(len(b), room)])
		if room -= n; n < len(b) {
			err = syscall.ENOSPC
		}
		return n, err
	}
	s := openSet(t, path, nil, &Options{kernel: k})
	add(t, s, "", "1\n")
	room = 50_000
	tries := 0
	for {
		_, err := s.Long("", 0, piecewise(long, 7000))
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		tries++
		room = rand.IntN(40_000)
	}
	room = 50_000
	_, err := s.Long("", 0, piecewise(long, 7000))
	if !errors.Is(err, syscall.ENOSPC) || tries == 0 {
		t.Errorf("%d tries: %v", tries, err)
	}
	s.Drop()
	room = 1 << 30
	add(t, s, "", "3\n")
	must(t, s.Write())
	if got := string(read(t, path)); got != "1\n"+long+long[:50_000]+"\n3\n" {
		t.Errorf("%d bytes", len(got))
	}
}

// TestLongRotated: a file is rotated before a long line that has no room in it, and all lines are
// found again.
func TestLongRotated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "{tag}.jsonl")
	var state []byte
	o := &Options{Rotation: Rotation{Size: 100_000}, Record: func(b []byte) error {
		state = bytes.Clone(b)
		return nil
	}}
	s := openSet(t, path, nil, o)
	add(t, s, "x", "1\n")
	b, err := s.Sync()
	must(t, err)
	state = b
	lines := []string{
		strings.Repeat("a", 60_000) + "\n", strings.Repeat("b", 60_000) + "\n",
		strings.Repeat("c", 200_000) + "\n", "2\n",
	}
	for _, crash := range []bool{true, false} {
		for _, line := range lines {
			_, err := s.Long("x", 0, piecewise(line, 9000))
			must(t, err)
		}
		if crash {
			must(t, s.Close())
			s = openSet(t, path, state, o)
		}
	}
	must(t, s.Close())
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	must(t, err)
	var all string
	for _, p := range paths[:len(paths)-1] {
		all += string(read(t, p))
	}
	last := string(read(t, filepath.Join(dir, "x.jsonl")))
	got := len(all) + len(last)
	if want := 2 + 60_001*2 + 200_001 + 2; got != want || len(paths) != 4 {
		t.Errorf("%d bytes in %d files, want %d in 4", got, len(paths), want)
	}
}
