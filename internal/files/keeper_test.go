// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCloseFinishes: when Close returns, keep and compress hold.
func TestCloseFinishes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	for _, noSync := range []bool{true, false} {
		s := openSet(t, path, nil, &Options{NoSync: noSync, Rotation: Rotation{Size: 20, Keep: 3, Compress: "gzip"}})
		for i := range 100 {
			add(t, s, "", fmt.Sprintf("line %d\n", i))
		}
		_, err := s.Sync()
		must(t, err)
		must(t, s.Close())
		got := names(t, dir)
		if len(got) != 4 || len(slices.DeleteFunc(slices.Clone(got),
			func(n string) bool { _, packed := cutPacked(n); return !packed })) != 3 {
			t.Errorf("%q", got)
		}
	}
}

// TestFinishWhileBusy: what became due while the keeper was at something else is done, too.
func TestFinishWhileBusy(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "app-20200101T000000.001.jsonl"), nil, 0o600))
	k := newKeeper(&Options{
		Rotation: Rotation{MaxAge: time.Hour}, Report: func(err error) { t.Error(err) },
		self: &identity{},
	})
	k.due["app"] = alone(filepath.Join(dir, "app.jsonl"))
	close(k.finish)
	k.run()
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// TestCloseUncommitted: what a state names as uncommitted is as it was after Close, and the next
// Set finds it.
func TestCloseUncommitted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	var state []byte
	o := &Options{
		Rotation: Rotation{Size: 20, Keep: 1, Compress: "gzip"},
		Record:   func(b []byte) error { state = b; return nil },
	}
	var want strings.Builder
	for range 2 {
		s := openSet(t, path, state, o)
		want.Reset()
		for i := range 20 {
			line := fmt.Sprintf("line %d\n", i)
			want.WriteString(line)
			add(t, s, "", line)
		}
		must(t, s.Write())
		must(t, s.Close())
		if got := allOf(t, path); got != want.String() {
			t.Fatalf("got %q", got)
		}
	}
	s := openSet(t, path, state, o)
	for i := range 20 {
		add(t, s, "", fmt.Sprintf("line %d\n", i))
	}
	_, err := s.Sync()
	must(t, err)
	must(t, s.Close())
	all, err := rotatedOf(path)
	must(t, err)
	if len(all) != 1 || all[0].forms != [formCount]bool{gzipForm: true} {
		t.Errorf("%+v", all)
	}
	if got := allOf(t, path); !strings.HasSuffix(want.String(), got) {
		t.Errorf("got %q", got)
	}
}

// TestCloseInTime: a compression for which there is no time leaves the plain file, and nothing half
// made.
func TestCloseInTime(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	big := rotatedName(path, time.Now())
	// Takes longer than what follows.
	must(t, os.WriteFile(big, bytes.Repeat([]byte("some line or other\n"), 4<<20), 0o600))
	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Size: 1 << 20, Compress: "gzip"}})
	add(t, s, "", "1\n")
	settle(t, s)
	until(t, "it has begun", func() bool { return slices.Contains(names(t, dir), filepath.Base(big)+unfinishedEnd) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must(t, s.CloseContext(ctx))
	if got := names(t, dir); !slices.Equal(got, []string{filepath.Base(big), "app.jsonl"}) {
		t.Errorf("%q", got)
	}
}

// TestTendLeft: what earlier processes left has its turn at the first Write, before any rotation.
func TestTendLeft(t *testing.T) {
	const stamp = "20200101T000000.00"
	for what, tt := range map[string]struct {
		rotation Rotation
		left     []string
		want     []string
	}{
		"too many": {
			Rotation{Size: 1000, Keep: 2},
			[]string{"app-" + stamp + "1.jsonl", "app-" + stamp + "2.jsonl.gz", "app-" + stamp + "3.jsonl"},
			[]string{"app-" + stamp + "2.jsonl.gz", "app-" + stamp + "3.jsonl"},
		},
		"too old": {
			Rotation{Size: 1000, MaxAge: time.Hour},
			[]string{"app-" + stamp + "1.jsonl", "app-" + stamp + "2.jsonl.gz"},
			nil,
		},
		"not compressed": {
			Rotation{Size: 1000, Compress: "gzip"},
			[]string{"app-" + stamp + "1.jsonl", "app-" + stamp + "2.jsonl", "app-" + stamp + "2.jsonl.gz.tmp"},
			[]string{"app-" + stamp + "1.jsonl.gz", "app-" + stamp + "2.jsonl.gz"},
		},
		"half compressed, by one that did": {
			Rotation{Size: 1000, Keep: 9},
			[]string{"app-" + stamp + "1.jsonl", "app-" + stamp + "1.jsonl.gz.tmp", "app-" + stamp + "2.jsonl.gz.tmp"},
			[]string{"app-" + stamp + "1.jsonl"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range tt.left {
				must(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
			}
			s := openSet(t, filepath.Join(dir, "app.jsonl"), nil, &Options{Rotation: tt.rotation})
			must(t, s.Write())
			until(t, fmt.Sprintf("%q is left", tt.want), func() bool { return slices.Equal(names(t, dir), tt.want) })
		})
	}
}

// TestTendLeftTags: of many tags, those that the state names have their turn at once.
func TestTendLeftTags(t *testing.T) {
	dir := t.TempDir()
	o := &Options{Rotation: Rotation{Size: 1000, Compress: "gzip"}}
	s := openSet(t, filepath.Join(dir, "{tag}"), nil, o)
	add(t, s, "a", "1\n")
	state, err := s.Sync()
	must(t, err)
	must(t, s.Close())
	for _, name := range []string{"a-20200101T000000.001", "b-20200101T000000.001"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	s = openSet(t, filepath.Join(dir, "{tag}"), state, o)
	must(t, s.Write())
	must(t, s.Close())
	if got := names(t, dir); !slices.Equal(got, []string{"a", "a-20200101T000000.001.gz", "b-20200101T000000.001"}) {
		t.Errorf("%q", got)
	}
}

// TestKeepWhatOthersWrite: a rotated file that another process has lines in is not deleted.
func TestKeepWhatOthersWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	other := openSet(t, path, nil, &Options{NoSync: true, Rotation: Rotation{Size: 1000}})
	add(t, other, "", "theirs\n")
	must(t, other.Write())
	rotation := Rotation{Size: 2, Keep: 1}
	s := openSet(t, path, nil, &Options{NoSync: true, Rotation: rotation})
	for _, line := range []string{"1\n", "2\n", "3\n"} {
		add(t, s, "", line)
		settle(t, s)
	}
	must(t, s.Close())
	if got := allOf(t, path); got != "theirs\n2\n3\n" {
		t.Errorf("got %q", got)
	}
	settle(t, other)
	must(t, other.Write())
	must(t, other.Close())
	if again, err := (&keeper{rotation: rotation}).look(alone(path)); again || err != nil {
		t.Errorf("%v, %v", again, err)
	}
	if got := allOf(t, path); got != "2\n3\n" {
		t.Errorf("got %q", got)
	}
}

// TestRotatedByOthers: what a process had written and not committed is found where another process
// has put it.
func TestRotatedByOthers(t *testing.T) {
	for _, closed := range []bool{false, true} { // its file, when the other rotates it
		dir := t.TempDir()
		path := filepath.Join(dir, "{tag}")
		var state []byte
		o := &Options{
			MaxOpen: 1, Rotation: Rotation{Size: 1000},
			Record: func(b []byte) error { state = b; return nil },
		}
		s := openSet(t, path, nil, o)
		lines := []string{"1\n", "2\n", "3\n", "4\n"}
		for i, line := range lines {
			add(t, s, "a", line)
			must(t, s.Write())
			if closed {
				add(t, s, "b", line)
				must(t, s.Write())
			}
			if i%2 == 1 {
				continue
			}
			other := openSet(t, path, nil, &Options{Rotation: Rotation{Size: 1}})
			add(t, other, "a", "theirs\n")
			must(t, other.Write())
			must(t, other.Close())
		}
		must(t, s.Close()) // killed
		s = openSet(t, path, state, o)
		for _, line := range lines {
			add(t, s, "a", line)
			if closed {
				add(t, s, "b", line)
			}
		}
		must(t, s.Write())
		if got := allOf(t, filepath.Join(dir, "a")); got != "1\ntheirs\n2\n3\ntheirs\n4\n" {
			t.Errorf("closed %v: got %q", closed, got)
		}
	}
}
