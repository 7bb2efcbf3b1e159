// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSharedLatch: a latch that somebody removed, cut or overwrote costs no line.
func TestSharedLatch(t *testing.T) {
	haveSharing(t, SharedLock)
	for name, harm := range map[string]func(t *testing.T, path string){
		"removed":     func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"cut":         func(t *testing.T, path string) { must(t, os.Truncate(path, 100)) },
		"overwritten": func(t *testing.T, path string) { overwrite(t, path, []byte(strings.Repeat("x", 5000))) },
		"replaced":    func(t *testing.T, path string) { must(t, os.Remove(path)); overwrite(t, path, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			a := openSet(t, path, nil, &Options{Shared: SharedLock})
			b := openSet(t, path, nil, &Options{Shared: SharedLock})
			for i := range 3 {
				for _, s := range []*Set{a, b} {
					add(t, s, "", fmt.Sprintf("{%d}\n", i))
					_, err := s.Sync()
					must(t, err)
				}
				harm(t, path+latchEnding)
			}
			if got, want := string(read(t, path)), "{0}\n{0}\n{1}\n{1}\n{2}\n{2}\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestSharedFolderGone: a folder that somebody removed under an open file is made again.
func TestSharedFolderGone(t *testing.T) {
	haveSharing(t, SharedLock)
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "x")
	s := openSet(t, path, nil, &Options{Shared: SharedLock})
	for i := range 2 {
		add(t, s, "", fmt.Sprintf("{%d}\n", i))
		_, err := s.Sync()
		must(t, err)
		if i == 0 {
			must(t, os.RemoveAll(dir))
		}
	}
	if got := string(read(t, path)); got != "{1}\n" {
		t.Errorf("%q", got)
	}
}

// TestLatchVoid: of a batch that a latch no longer knows it does not say that it is there.
func TestLatchVoid(t *testing.T) {
	haveSharing(t, SharedLock)
	l, err := openLatch(filepath.Join(t.TempDir(), "x"),
		&Options{FileMode: 0o600, kernel: &kernel{writeAt: (*os.File).WriteAt}})
	must(t, err)
	defer l.file.Close()
	lock := func() {
		ok, err := l.lock()
		if must(t, err); !ok {
			t.Fatal("it is not at its path")
		}
	}
	lock()
	must(t, l.take())
	must(t, l.make([]byte("{x}\n"), 1, 0))
	id := l.head.id
	for range voids + 1 { // of which the first is forgotten
		must(t, l.take())
	}
	must(t, l.take())
	must(t, l.make([]byte("{y}\n"), 1, 0))
	last := l.head.number
	l.unlock()
	lock()
	for number := range last + 2 {
		if have, want := l.has(place{id, number}), number == last; have != want {
			t.Errorf("number %d of %d: %v", number, last, have)
		}
	}
	if l.has(place{id + 1, last}) {
		t.Error("another latch's batch is there")
	}
}

// TestLatchFull: a disk that has no room for a batch in the latch costs no numbers, of which it
// remembers a few.
func TestLatchFull(t *testing.T) {
	haveSharing(t, SharedLock)
	path := filepath.Join(t.TempDir(), "x")
	full := errors.New("no room")
	left := 0
	k := &kernel{writeAt: func(f *os.File, b []byte, at int64) (int, error) {
		if at > 0 && left > 0 {
			left--
			return 0, full
		}
		return f.WriteAt(b, at)
	}, sync: (*os.File).Sync, syncDir: syncDir, atOnce: 1}
	s := openSet(t, path, nil, &Options{Shared: SharedLock, kernel: k})
	for i := range 2 {
		add(t, s, "", fmt.Sprintf("{%d}\n", i))
		for range left {
			if _, err := s.Sync(); !errors.Is(err, full) {
				t.Fatal(err)
			}
		}
		_, err := s.Sync()
		must(t, err)
		left = voids + 1
	}
	if h, ok := parseLatch(read(t, path+latchEnding)); !ok || h.number != 2 || len(h.void) > 0 {
		t.Errorf("%+v", h)
	}
}

// TestLatchRestart: after a restart of the machine a latch has another id, since its numbers may
// have been set back by a power cut. What lies in it is completed all the same.
func TestLatchRestart(t *testing.T) {
	haveSharing(t, SharedLock)
	path := filepath.Join(t.TempDir(), "x")
	p := &party{o: Options{Shared: SharedLock}, path: path, chunk: 1, lines: []string{"{a}\n", "{b}\n"}}
	p.run(t, -1, 1, 1)
	if p.run(t, killedWithin, 1, 2) {
		t.Fatal("it was not killed")
	}
	text := read(t, path+latchEnding)
	before, _ := parseLatch(text)
	then := before
	then.boot = 1
	overwrite(t, path+latchEnding, append(then.append(nil), text[latchLen:]...))
	s := openSet(t, path, nil, &Options{Shared: SharedLock})
	add(t, s, "", "{c}\n")
	_, err := s.Sync()
	must(t, err)
	h, ok := parseLatch(read(t, path+latchEnding))
	l := latch{head: h}
	if !ok || bootID() != 0 && (h.boot != bootID() || l.has(place{before.id, before.number})) {
		t.Errorf("%+v, before %+v", h, before)
	}
	if got, want := string(read(t, path)), "{a}\n{b}\n{c}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLatchesOpen: no more latches are open than files, and those that are not used are closed.
func TestLatchesOpen(t *testing.T) {
	haveSharing(t, SharedLock)
	s := openSet(t, filepath.Join(t.TempDir(), "{tag}"), nil, &Options{Shared: SharedLock, MaxOpen: 2})
	open := func() (n int) {
		for _, f := range s.index.order {
			if f.latch != nil {
				n++
			}
		}
		return n
	}
	for _, tag := range []string{"a", "b", "c", "d"} {
		add(t, s, tag, "{}\n")
	}
	must(t, s.Write())
	if n := open(); n > 2 {
		t.Errorf("%d latches are open", n)
	}
	for f := s.handles.newest; f != nil; f = f.older {
		f.used = time.Now().Add(-2 * s.o.Idle)
	}
	must(t, s.Write())
	if n := open(); n > 0 {
		t.Errorf("%d latches are open that nobody uses", n)
	}
}

// TestSharedMend: what lies in a latch comes into the file, whatever somebody else did to it.
func TestSharedMend(t *testing.T) {
	haveSharing(t, SharedLock)
	unlessRoot := "{b}\n" // which may write all files
	if os.Geteuid() == 0 {
		unlessRoot = ""
	}
	for name, tt := range map[string]struct {
		harm func(t *testing.T, path string)
		want string
	}{
		"nothing": {func(*testing.T, string) {}, "{a}\n{b}\n{c}\n"},
		"cut":     {func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, "{b}\n{c}\n"},
		"renamed": {func(t *testing.T, path string) { must(t, os.Rename(path, path+".1")) }, "{c}\n"},
		"removed": {func(t *testing.T, path string) { must(t, os.Remove(path)) }, "{b}\n{c}\n"},
		"another": {
			func(t *testing.T, path string) { must(t, os.Rename(path, path[:len(path)-6]+"-errors.jsonl")) },
			"{b}\n{c}\n",
		},
		"packed": {func(t *testing.T, path string) { must(t, os.Rename(path, path+".1.gz")) }, "{b}\n{c}\n"},

		"renamed for another": {func(t *testing.T, path string) {
			must(t, os.Chmod(path, 0))
			must(t, os.Rename(path, path+".1"))
		}, unlessRoot + "{c}\n"},
		"cut in a line":        {func(t *testing.T, path string) { must(t, os.Truncate(path, 2)) }, "{a\n{b}\n{c}\n"},
		"followed by another":  {foreignWriter(6, "{s}\n"), "{a}\n{b{s}\n{b}\n{c}\n"},
		"another in its place": {foreignWriter(4, "{s}\n{s}\n"), "{a}\n{s}\n{s}\n{b}\n{c}\n"},
		"another's part":       {foreignWriter(4, "{s"), "{a}\n{s\n{b}\n{c}\n"},
		"another before it":    {foreignWriter(4, "{s}\n{b}\n"), "{a}\n{s}\n{b}\n{c}\n"},
		"whole, and another":   {foreignWriter(6, "}\n{s}\n"), "{a}\n{b}\n{s}\n{c}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.jsonl")
			p := &party{o: Options{Shared: SharedLock}, path: path, chunk: 1, lines: []string{"{a}\n", "{b}\n"}}
			p.run(t, -1, 1, 1)
			if p.run(t, killedWithin, 1, 2) {
				t.Fatal("it was not killed")
			}
			if got := string(read(t, path)); got != "{a}\n{b" {
				t.Fatalf("%q", got)
			}
			tt.harm(t, path)
			s := openSet(t, path, nil, &Options{Shared: SharedLock})
			add(t, s, "", "{c}\n")
			_, err := s.Sync()
			must(t, err)
			if got := string(read(t, path)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if name == "renamed" {
				if got := string(read(t, path+".1")); got != "{a}\n{b}\n" {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

// TestSharedDamaged: where the batch that a process was killed at cannot be read, or is larger than
// any, its lines come again.
func TestSharedDamaged(t *testing.T) {
	haveSharing(t, SharedLock)
	for name, harm := range map[string]func(t *testing.T, latch string){
		"cut": func(t *testing.T, latch string) { must(t, os.Truncate(latch, latchBatch)) },
		"overwritten": func(t *testing.T, latch string) {
			must(t, os.Truncate(latch, latchBatch))
			appendTo(t, latch,
				"none")
		},
		"huge": func(t *testing.T, latch string) {
			h, ok := parseLatch(read(t, latch))
			if !ok {
				t.Fatal("no head")
			}
			h.length = 1 << 40
			overwrite(t, latch, h.append(nil))
			if err := os.Truncate(latch, latchBatch+1<<40); err != nil {
				t.Log(err) // then it is cut
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			p := &party{o: Options{Shared: SharedLock}, path: path, chunk: 1, lines: []string{"{a}\n", "{b}\n"}}
			p.run(t, -1, 1, 1)
			if p.run(t, killedWithin, 1, 2) {
				t.Fatal("it was not killed")
			}
			harm(t, path+latchEnding)
			s := openSet(t, path, nil, &Options{Shared: SharedLock})
			add(t, s, "", "{c}\n")
			_, err := s.Sync()
			must(t, err)
			p.run(t, -1, 1, 2)
			must(t, p.set.Close())
			if got, want := string(read(t, path)), "{a}\n{b\n{c}\n{b}\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// killedWithin is when a process is killed that writes a line under the lock: the batch in
// the latch, a head taken, a state, a head with the batch, and two bytes of the line.
const killedWithin = 4 + 2 + 2 + 2 + 2

// foreignWriter writes a file from a place on that a killed process has written to, without the
// lock.
func foreignWriter(at int64, text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		must(t, os.Truncate(path, at))
		appendTo(t, path, text)
	}
}

// FuzzLatch lets a latch be any bytes: lines are written all the same.
func FuzzLatch(f *testing.F) {
	head := func(h latchHead) []byte { return append(h.append(nil), make([]byte, latchBatch-latchLen)...) }
	f.Add([]byte{})
	f.Add(head(latchHead{id: 1, number: 2, phase: written, void: []uint64{1}}))
	f.Add(append(head(latchHead{id: 1, number: 2, phase: made, length: 4, sum: stretchOf([]byte("{x}\n")).sum}),
		"{x}\n"...))
	f.Add(head(latchHead{id: 1, phase: made, length: 1 << 60, offset: 1 << 63}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		haveSharing(t, SharedLock)
		path := filepath.Join(dir, "x")
		overwrite(t, path, []byte("{old}\n"))
		overwrite(t, path+latchEnding, b)
		s, err := Open(path, nil, &Options{Shared: SharedLock, NoSync: true})
		must(t, err)
		defer s.Close()
		add(t, s, "", "{new}\n")
		_, err = s.Sync()
		must(t, err)
		if got := string(read(t, path)); !strings.HasPrefix(got, "{old}\n") || !strings.HasSuffix(got, "{new}\n") {
			t.Fatalf("%q", got)
		}
	})
}
