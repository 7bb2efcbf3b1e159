// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSet(t *testing.T) {
	dir := t.TempDir()
	s := openSet(t, filepath.Join(dir, "{tag}", "{date}.jsonl"), nil, nil)
	const day = 86400
	must(t, extend(s, "app.web", 0, "1\n2\n")) // several lines at once
	must(t, extend(s, "../x", day, "3\n"))
	must(t, extend(s, "app.web", day, "4\n"))
	must(t, extend(s, "app.web", day-1, "5\n"))
	_, err := s.Sync()
	must(t, err)
	for name, want := range map[string]string{
		"app.web/1970-01-01.jsonl":    "1\n2\n5\n",
		"app.web/1970-01-02.jsonl":    "4\n",
		"%2E%2E%2Fx/1970-01-02.jsonl": "3\n",
	} {
		if got := string(read(t, filepath.Join(dir, filepath.FromSlash(name)))); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestSetErrors(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "x"), nil, nil)
	must(t, s.Close())
	must(t, s.Close())
	if err := extend(s, "", 0, "x\n"); !errors.Is(err, ErrClosed) {
		t.Errorf("Extend: %v", err)
	}
	if err := s.Write(); !errors.Is(err, ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	if _, err := s.Sync(); !errors.Is(err, ErrClosed) {
		t.Errorf("Sync: %v", err)
	}
	if _, err := Open("x", nil, &Options{MaxOpen: -1}); err == nil {
		t.Error("a negative MaxOpen")
	}
}

// TestManyTags wants few files open, whatever comes.
func TestManyTags(t *testing.T) {
	dir := t.TempDir()
	k := (&faulty{}).kernel()
	s := openSet(t, filepath.Join(dir, "{tag}"), nil, &Options{MaxOpen: 2, kernel: k})
	const tags, rounds = 20, 5
	asked := false
	for round := range rounds {
		for tag := range tags {
			add(t, s, fmt.Sprint(tag), fmt.Sprintf("%d\n", round))
			if tag%3 == 0 {
				must(t, s.Write())
			}
			if s.handles.n > 2 {
				t.Fatalf("%d files are open", s.handles.n)
			}
			if s.WantSync() {
				asked = true
				_, err := s.Sync()
				must(t, err)
			}
			if len(s.index.files) > 16 || len(s.index.routes) > 16 {
				t.Fatalf("%d files and %d routes are remembered", len(s.index.files), len(s.index.routes))
			}
		}
	}
	_, err := s.Sync()
	must(t, err)
	if !asked {
		t.Error("no Sync was wanted")
	}
	for tag := range tags {
		if got := string(read(t, filepath.Join(dir, fmt.Sprint(tag)))); got != "0\n1\n2\n3\n4\n" {
			t.Errorf("tag %d: %q", tag, got)
		}
	}
}

// TestMovedAway wants a new file when the old one has another name, or none.
func TestMovedAway(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	var told []error
	s := openSet(t, path, nil, &Options{Report: func(err error) { told = append(told, err) }})
	add(t, s, "", "1\n")
	must(t, s.Write())
	must(t, os.Rename(path, path+".1"))
	add(t, s, "", "2\n")
	must(t, s.Write())
	if s.WantSync() || len(told) != 1 { // the state names it, and it would be found
		t.Errorf("want sync %v, told %v", s.WantSync(), told)
	}
	elsewhere := filepath.Join(t.TempDir(), "x")
	must(t, os.Rename(path, elsewhere))
	add(t, s, "", "2\n")
	must(t, s.Write())
	if !s.WantSync() || !s.Crowded() || len(told) != 2 {
		t.Errorf("want sync %v, told %v", s.WantSync(), told)
	}
	_, err := s.Sync()
	must(t, err)
	must(t, os.Remove(path))
	add(t, s, "", "3\n")
	_, err = s.Sync()
	must(t, err)
	must(t, os.Rename(path, path+".2"))
	appendTo(t, path, "another program's")
	add(t, s, "", "4\n")
	_, err = s.Sync()
	must(t, err)
	must(t, os.Truncate(path, 0))
	add(t, s, "", "5\n")
	_, err = s.Sync()
	must(t, err)
	for name, want := range map[string]string{"x.1": "1\n", "x.2": "3\n", "x": "5\n"} {
		if got := string(read(t, filepath.Join(dir, name))); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestForeignWriterWhileRunning: what others append between two commits is known to be theirs after
// a crash.
func TestForeignWriterWhileRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var state []byte
	o := &Options{Record: func(s []byte) error { state = s; return nil }}
	s := openSet(t, path, nil, o)
	add(t, s, "", "1\n")
	state, err := s.Sync()
	must(t, err)
	appendTo(t, path, "theirs\nand a part")
	add(t, s, "", "2\n")
	must(t, s.Write())
	must(t, s.Close()) // killed
	s = openSet(t, path, state, o)
	add(t, s, "", "2\n")
	add(t, s, "", "3\n")
	must(t, s.Write())
	if got := string(read(t, path)); got != "1\ntheirs\nand a part\n2\n3\n" {
		t.Errorf("got %q", got)
	}
}

// TestKinds wants nothing but regular files written, and no waiting for a FIFO.
func TestKinds(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	must(t, os.WriteFile(target, nil, 0o644))
	for name, make := range kinds(t, target) {
		path := filepath.Join(dir, name)
		make(path)
		s := openSet(t, path, nil, nil)
		add(t, s, "", "1\n")
		err := s.Write()
		if err == nil || !strings.Contains(err.Error(), path) || name != "directory" && !errors.Is(err, ErrKind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := read(t, target); len(got) != 0 {
		t.Errorf("a link was followed: %q", got)
	}
}

// TestIdle wants files closed that get no lines, and opened again when they do.
func TestIdle(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(filepath.Join(dir, "{tag}"), nil, &Options{Idle: time.Minute})
		must(t, err)
		defer s.Close()
		add(t, s, "a", "1\n")
		add(t, s, "b", "1\n")
		_, err = s.Sync()
		must(t, err)
		<-time.After(40 * time.Second)
		add(t, s, "b", "2\n")
		must(t, s.Write())
		<-time.After(40 * time.Second)
		must(t, s.Write())
		if s.handles.n != 1 {
			t.Errorf("%d files are open", s.handles.n)
		}
		add(t, s, "a", "2\n")
		state, err := s.Sync()
		must(t, err)
		if got, err := parseState(state); err != nil || len(got.entries) != 2 {
			t.Errorf("%v, %v", got.entries, err)
		}
		<-time.After(2 * time.Minute)
		state, err = s.Sync()
		must(t, err)
		if got, err := parseState(state); err != nil || len(got.entries) != 0 || len(s.index.files) != 0 {
			t.Errorf("%v, %v, %d", got.entries, err, len(s.index.files))
		}
	})
	for _, tag := range []string{"a", "b"} {
		if got := string(read(t, filepath.Join(dir, tag))); got != "1\n2\n" {
			t.Errorf("%s: %q", tag, got)
		}
	}
}

// TestPatience: bytes behind a length that no line came for are a foreign writer's in the end.
func TestPatience(t *testing.T) {
	path := filepath.Join(t.TempDir(), "{tag}")
	synctest.Test(t, func(t *testing.T) {
		s := openSet(t, path, nil, nil)
		add(t, s, "a", "1\n")
		state, err := s.Sync()
		must(t, err)
		must(t, s.Close())
		appendTo(t, strings.Replace(path, "{tag}", "a", 1), "theirs\n")
		s = openSet(t, path, state, nil)
		for _, want := range []int{1, 1, 0} {
			state, err := s.Sync()
			must(t, err)
			if got, err := parseState(state); err != nil || len(got.entries) != want {
				t.Errorf("%v, %v; want %d", got.entries, err, want)
			}
			<-time.After(31 * time.Minute)
		}
	})
}

// TestShared has several Sets append to one file, and wants every line whole.
func TestShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	const sets, lines = 4, 2000
	var wg sync.WaitGroup
	for i := range sets {
		s := openSet(t, path, nil, &Options{Buffer: 3000})
		wg.Go(func() {
			for n := range lines {
				line := fmt.Sprintf("{%d %d %s}\n", i, n, strings.Repeat("x", n%50))
				if err := extend(s, "", 0, line); err != nil {
					t.Error(err)
					return
				}
			}
			if _, err := s.Sync(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var next [sets]int
	for line := range strings.Lines(string(read(t, path))) {
		var i, n int
		if _, err := fmt.Sscanf(line, "{%d %d", &i, &n); err != nil || n != next[i] ||
			line != fmt.Sprintf("{%d %d %s}\n", i, n, strings.Repeat("x", n%50)) {
			t.Fatalf("%q: %v", line, err)
		}
		next[i]++
	}
	for _, n := range next {
		if n != lines {
			t.Errorf("lines %v", next)
		}
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	s := openSet(t, filepath.Join(dir, "a", "{tag}", "x"), nil, &Options{FileMode: 0o600, DirMode: 0o700})
	add(t, s, "b", "1\n")
	must(t, s.Write())
	for name, want := range map[string]os.FileMode{"a": 0o700, "a/b": 0o700, "a/b/x": 0o600} {
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		must(t, err)
		if got := info.Mode().Perm(); got != want && os.PathSeparator == '/' {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestExtendAllocs(t *testing.T) {
	s := openSet(t, filepath.Join(t.TempDir(), "{tag}.{date}"), nil, nil)
	line := []byte(strings.Repeat("x", 159) + "\n")
	render := func(dst []byte) []byte { return append(dst, line...) }
	tags := []string{"app.web", "app.api"}
	for i := range 500 { // grow the buffers
		_, err := s.Extend(tags[i%2], 0, render)
		must(t, err)
	}
	must(t, s.Write())
	i := 0
	if n := testing.AllocsPerRun(200, func() {
		i++
		if _, err := s.Extend(tags[i/2%2], 0, render); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}

func BenchmarkExtend(b *testing.B) {
	line := []byte(strings.Repeat("x", 179) + "\n")
	for _, tags := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("tags=%d", tags), func(b *testing.B) {
			k := &kernel{
				write: func(_ *os.File, p []byte) (int, error) { return len(p), nil },
				sync:  func(*os.File) error { return nil }, syncDir: func(string) error { return nil },
			}
			s, err := Open(filepath.Join(b.TempDir(), "{tag}.{date}"), nil, &Options{kernel: k})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			names := tagNames(tags)
			render := func(dst []byte) []byte { return append(dst, line...) }
			i := 0
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				i++
				full, err := s.Extend(names[i%tags], 0, render)
				if full && err == nil {
					err = s.Write()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTags is the whole way onto the disk, with more tags than files may be open and a Sync
// when it is wanted.
func BenchmarkTags(b *testing.B) {
	line := []byte(strings.Repeat("x", 179) + "\n")
	s, err := Open(filepath.Join(b.TempDir(), "{tag}"), nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const tags = 1000
	names := tagNames(tags)
	render := func(dst []byte) []byte { return append(dst, line...) }
	i := 0
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		i++
		full, err := s.Extend(names[i%tags], 0, render)
		if full && err == nil {
			err = s.Write()
		}
		if err != nil {
			b.Fatal(err)
		}
		if i%tags == 0 && s.WantSync() {
			if _, err := s.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkWrite is the whole way into the page cache, in batches of the default size.
func BenchmarkWrite(b *testing.B) {
	line := []byte(strings.Repeat("x", 179) + "\n")
	path := filepath.Join(b.TempDir(), "x")
	s, err := Open(path, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	render := func(dst []byte) []byte { return append(dst, line...) }
	written := 0
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		full, err := s.Extend("app.web", 0, render)
		if full && err == nil {
			err = s.Write()
		}
		if err != nil {
			b.Fatal(err)
		}
		if written += len(line); written > 256<<20 {
			written = 0
			if err := os.Truncate(path, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func tagNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("app.web.%d", i)
	}
	return names
}
