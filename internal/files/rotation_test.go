// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// settle writes what waits and forgets the state.
func settle(t *testing.T, s *Set) {
	t.Helper()
	_, err := s.Sync()
	must(t, err)
}

// until waits for something that another goroutine does.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within minutes: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

// cutPacked cuts what the name of a compressed file ends in.
func cutPacked(name string) (plain string, packed bool) {
	for _, form := range []int{gzipForm, zstdForm} {
		if plain, ok := strings.CutSuffix(name, endings[form]); ok {
			return plain, true
		}
	}
	return name, false
}

// unpack undoes a compression.
func unpack(t *testing.T, b []byte) []byte {
	t.Helper()
	var z io.Reader
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
	}
	must(t, err)
	b, err = io.ReadAll(z)
	must(t, err)
	return b
}

// allOf returns the content of a path and of all its rotated files, compressed ones too, in the
// order of time.
func allOf(t *testing.T, path string) string {
	t.Helper()
	var b bytes.Buffer
	rotated, err := rotatedOf(path)
	must(t, err)
	slices.Reverse(rotated)
	for _, r := range rotated {
		if r.forms[plainForm] {
			b.Write(read(t, r.path))
			continue
		}
		for _, form := range []int{gzipForm, zstdForm} {
			if r.forms[form] {
				b.Write(unpack(t, read(t, r.path+endings[form])))
			}
		}
	}
	if _, err := os.Stat(path); err == nil {
		b.Write(read(t, path))
	}
	return b.String()
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestRotateSize(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Size: 100}})
	var want strings.Builder
	for i := range 50 {
		line := fmt.Sprintf("line %020d\n", i) // 26 bytes
		want.WriteString(line)
		add(t, s, "", line)
		settle(t, s)
		if info, err := os.Stat(path); err != nil || info.Size() > 100 {
			t.Fatalf("%v, %v", info.Size(), err)
		}
	}
	must(t, s.Close())
	if got := allOf(t, path); got != want.String() {
		t.Errorf("got %s", got)
	}
	if n := len(names(t, dir)); n != 17 { // three lines each
		t.Errorf("%d files", n)
	}
}

func TestRotateEvery(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app")
	must(t, os.WriteFile(path, []byte("yesterday\n"), 0o600))
	yesterday := time.Now().Add(-24 * time.Hour)
	must(t, os.Chtimes(path, yesterday, yesterday))
	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Every: 24 * time.Hour}})
	add(t, s, "", "today\n")
	settle(t, s)
	if got := string(read(t, path)); got != "today\n" {
		t.Errorf("got %q", got)
	}
	f := s.handles.newest
	f.period-- // midnight
	must(t, s.Write())
	if _, err := os.Stat(path); err == nil {
		t.Error("it is still there after midnight")
	}
	add(t, s, "", "tomorrow\n")
	settle(t, s)
	if got := allOf(t, path); got != "yesterday\ntoday\ntomorrow\n" {
		t.Errorf("got %q", got)
	}
}

// TestKeep: what is not a rotated file of the path stays, whatever it is called.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("x"), 0o600))
	strangers := []string{
		"app-20200101T000000.000.jsonl.bak", "app-20200101T000000.000.json", "app-20200101T000000.jsonl",
		"app-x20200101T000000.000.jsonl",
		"app-20201301T000000.000.jsonl", "app-web-20200101T000000.000.jsonl", "xapp-20200101T000000.000.jsonl",
		"app-20200101T000000.000.jsonl.gz.gz", "app-20200101T000000.000.jsonl.zst.tmp",
	}
	for _, name := range strangers {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	link, folder := filepath.Join(dir, "app-20200101T000000.001.jsonl"), filepath.Join(dir,
		"app-20200101T000000.002.jsonl")
	must(t, os.Symlink(outside, link))
	must(t, os.Mkdir(folder, 0o700))
	old := filepath.Join(dir, "app-20200101T000000.003.jsonl.gz")
	must(t, os.WriteFile(old, []byte("x"), 0o600))
	torn := filepath.Join(dir, "app-20200101T000000.004.jsonl.gz.tmp")
	must(t, os.WriteFile(torn, []byte("x"), 0o600))

	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Size: 1, Keep: 3, MaxAge: time.Hour}})
	for i := range 10 {
		add(t, s, "", fmt.Sprintf("%d\n", i))
		settle(t, s)
	}
	until(t, "three are left", func() bool {
		all, err := rotatedOf(path)
		must(t, err)
		return len(all) == 3
	})
	must(t, s.Close())
	if got := allOf(t, path); got != "6\n7\n8\n9\n" {
		t.Errorf("got %q", got)
	}
	for _, name := range append(strangers, filepath.Base(link), filepath.Base(folder)) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, gone := range []string{old, torn} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is still there", gone)
		}
	}
	if string(read(t, outside)) != "x" {
		t.Error("the link was followed")
	}
}

func TestCompress(t *testing.T) {
	for _, how := range []string{"gzip", "zstd"} {
		t.Run(how, func(t *testing.T) { testCompress(t, how) })
	}
}

func testCompress(t *testing.T, how string) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	s := openSet(t, path, nil, &Options{NoSync: true, FileMode: 0o640, Rotation: Rotation{Size: 1000, Compress: how}})
	var want strings.Builder
	for i := range 500 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		add(t, s, "", line)
		if i%7 == 0 {
			settle(t, s)
		}
	}
	settle(t, s)
	until(t, "all are compressed", func() bool {
		plain, err := filepath.Glob(filepath.Join(dir, "app-*.jsonl"))
		must(t, err)
		return len(plain) == 0
	})
	must(t, s.Close())
	if got := allOf(t, path); got != want.String() {
		t.Errorf("got %s", got)
	}
	for _, name := range names(t, dir) {
		info, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if strings.HasSuffix(name, ".tmp") || info.Mode().Perm() != 0o640 {
			t.Errorf("%s %v", name, info.Mode())
		}
	}
}

// TestCompressLeft: what a process that was killed left is made whole by the next.
func TestCompressLeft(t *testing.T) {
	for _, before := range []int{gzipForm, zstdForm} {
		for _, after := range []int{gzipForm, zstdForm} {
			t.Run(endings[before]+endings[after], func(t *testing.T) { testCompressLeft(t, before, after) })
		}
	}
}

// testCompressLeft: before is how the killed process compressed, and after how the next does.
func testCompressLeft(t *testing.T, before, after int) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	left := filepath.Join(dir, "app-20201231T000000.000.jsonl")
	must(t, os.WriteFile(left, []byte("1\n"), 0o600))
	must(t, os.WriteFile(left+unfinishedEnd, []byte("torn"), 0o600))
	both := filepath.Join(dir, "app-20201231T000000.001.jsonl")
	must(t, os.WriteFile(both, []byte("2\n"), 0o600))
	must(t, os.WriteFile(both+endings[before], []byte("whole, but the other was not removed yet"), 0o600))
	used := filepath.Join(dir, "app-20201231T000000.002.jsonl")
	must(t, os.WriteFile(used, []byte("3\n"), 0o600))
	h, err := os.OpenFile(used, openFlags, 0)
	must(t, err)
	if !lockFile(h, false) {
		t.Fatal("no lock")
	}
	how := [formCount]string{gzipForm: "gzip", zstdForm: "zstd"}[after]
	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Size: 1000, Compress: how}})
	add(t, s, "", "4\n")
	settle(t, s)
	until(t, "two are compressed", func() bool {
		for _, name := range []string{left, both, left + unfinishedEnd} {
			if _, err := os.Stat(name); err == nil {
				return false
			}
		}
		return true
	})
	if got := names(t, dir); !slices.Contains(got, filepath.Base(used)) {
		t.Errorf("what another process writes was compressed: %q", got)
	} else if before != after && slices.Contains(got, filepath.Base(both)+endings[before]) {
		t.Errorf("a file is there compressed twice: %q", got)
	}
	must(t, h.Close())
	must(t, s.Close())
	if got := allOf(t, path); got != "1\n2\n3\n4\n" {
		t.Errorf("got %q", got)
	}
}

// TestRotateTwo: two Sets on one file rotate it once each time, and lose and tear nothing.
func TestRotateTwo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	o := Options{NoSync: true, Rotation: Rotation{Size: 10_000, Compress: "gzip"}}
	done := make(chan error)
	const lines = 3000
	for who := range 2 {
		go func() {
			s, err := Open(path, nil, &o)
			for i := 0; i < lines && err == nil; i++ {
				if err = extend(s, "", 0, fmt.Sprintf("%d %d %s\n", who, i, strings.Repeat("x", i%50))); err == nil &&
					i%5 == 0 {
					_, err = s.Sync()
				}
			}
			if err == nil {
				_, err = s.Sync()
			}
			if err == nil {
				err = s.Close()
			}
			done <- err
		}()
	}
	must(t, <-done)
	must(t, <-done)
	next := [2]int{}
	for line := range strings.Lines(allOf(t, path)) {
		var who, i int
		var x string
		if _, err := fmt.Sscanf(line, "%d %d %s", &who, &i, &x); err != nil && i%50 != 0 || i != next[who] {
			t.Fatalf("%q: not line %d: %v", line, next[who], err)
		}
		next[who]++
	}
	if next != [2]int{lines, lines} {
		t.Errorf("%d lines", next)
	}
	all, err := rotatedOf(path)
	must(t, err)
	for _, r := range all[1:] { // the last of them may be small
		if r.forms[plainForm] {
			if info, err := os.Stat(r.path); err != nil || info.Size() < 5000 {
				t.Errorf("%s: rotated again at %d bytes, %v", r.path, info.Size(), err)
			}
		}
	}
}

// TestRotatedOrder: names sort in the order of rotation though the clock is set back.
func TestRotatedOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	future := rotatedName(path, time.Now().Add(time.Hour))
	must(t, os.WriteFile(future, []byte("1\n"), 0o600))
	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Size: 1}})
	for _, line := range []string{"2\n", "3\n", "4\n"} {
		add(t, s, "", line)
		settle(t, s)
	}
	if got := allOf(t, path); got != "1\n2\n3\n4\n" {
		t.Errorf("got %q", got)
	}
}

func TestRotatedName(t *testing.T) {
	at := time.Date(2026, 11, 21, 2, 3, 4, 123_456_789, time.FixedZone("", 3600))
	for _, tt := range [][2]string{
		{"/var/log/app.jsonl", "/var/log/app-20261121T010304.123.jsonl"},
		{"app", "app-20261121T010304.123"},
		{"/x/.hidden", "/x/.hidden-20261121T010304.123"},
		{"/x.y/a.b.c", "/x.y/a.b-20261121T010304.123.c"},
	} {
		got := rotatedName(tt[0], at)
		if got != tt[1] {
			t.Errorf("%s: got %s", tt[0], got)
		}
		_, base, ending := splitName(tt[0])
		for form, e := range endings {
			if back, f, ok := parseRotated(filepath.Base(got+e), base, ending); !ok || f != form ||
				!back.Equal(at.Truncate(time.Millisecond)) {
				t.Errorf("%s: %v %d %v", got+e, back, f, ok)
			}
		}
	}
	if _, err := Open("x", nil, &Options{Rotation: Rotation{Size: -1}}); err == nil {
		t.Error("a negative size")
	}
	if _, err := Open("x", nil, &Options{Rotation: Rotation{Every: time.Millisecond}}); err == nil {
		t.Error("a short time")
	}
	if _, err := Open("x", nil, &Options{Rotation: Rotation{Compress: "lzma"}}); err == nil {
		t.Error("an unknown compression")
	}
	if _, err := Open(strings.Repeat("x", 240), nil, &Options{Rotation: Rotation{Size: 1}}); err == nil {
		t.Error("no room for the stamp")
	}
}

// TestTagsLikeRotatedFiles has tags that would give their files names of rotated files of another
// tag, which would be deleted.
func TestTagsLikeRotatedFiles(t *testing.T) {
	const stamp = "20200101T000000.000"
	for pattern, tags := range map[string][]string{
		"{tag}.jsonl":     {"a-" + stamp, "a-" + stamp + ".jsonl.gz", "a-" + stamp + ".jsonl"},
		"{tag}":           {"a-" + stamp, "a-" + stamp + ".gz", "a-" + stamp + ".gz.tmp"},
		"a-{tag}.jsonl":   {stamp},
		"{tag}/x-{tag}.l": {stamp},
	} {
		rotation := Rotation{Size: 100, Keep: 1, MaxAge: time.Hour, Compress: "gzip"}
		s, err := Open(filepath.Join(t.TempDir(), pattern), nil, &Options{NoSync: true, Rotation: rotation})
		must(t, err)
		for _, tag := range tags {
			add(t, s, tag, "precious\n")
			settle(t, s)
			path := s.index.lookUp(s.index.pattern.route(tag, 0)).path
			for _, victim := range []string{"a", "a.jsonl", "x.l"} {
				_, err := (&keeper{rotation: rotation}).look(alone(filepath.Join(filepath.Dir(path), victim)))
				must(t, err)
			}
			if got := string(read(t, path)); got != "precious\n" {
				t.Errorf("%s, %s: %q", pattern, tag, got)
			}
		}
		must(t, s.Close())
	}
}

// TestRotateNoFresh: the time of a file's last change may be behind the clock by a tick of the
// kernel's. A file that was begun right after midnight is not taken for one of the day before.
func TestRotateNoFresh(t *testing.T) {
	midnight := time.Now().Truncate(time.Second)
	o := Options{Rotation: Rotation{Every: time.Duration(midnight.Unix()) * time.Second}}
	for before, want := range map[time.Duration]string{5 * time.Millisecond: "{a}\n{b}\n", time.Second: "{b}\n"} {
		path := filepath.Join(t.TempDir(), "x")
		overwrite(t, path, []byte("{a}\n"))
		must(t, os.Chtimes(path, time.Time{}, midnight.Add(-before)))
		s := openSet(t, path, nil, &o)
		add(t, s, "", "{b}\n")
		_, err := s.Sync()
		must(t, err)
		if got := string(read(t, path)); got != want {
			t.Errorf("%v before midnight: %q, want %q", before, got, want)
		}
	}
}
