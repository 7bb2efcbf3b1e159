// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

func TestState(t *testing.T) {
	writers := []identity{{}, {"host", "1", "/{tag}"}, {"", "4711", ""}}
	entries := []entry{
		{writer: 0, path: "/var/log/app.jsonl", inode: 1, length: 0},
		{writer: 2, path: "/var/log/app.web.jsonl", inode: math.MaxUint64, length: math.MaxInt64, doubt: true},
		{writer: 1, path: "/var/log/app", inode: 7, length: 5, tail: tail{at: 5, size: 3, sum: math.MaxUint32}},
		{writer: 1, path: "x", inode: 7, length: 5},
		{writer: 1, path: "xy", inode: 8, length: 5, limit: 300, tail: tail{at: 5, size: 3, sum: 1}},
	}
	want := state{writers, entries, true, Point{"here", 1234}}
	b := appendState(nil, &want)
	got, err := parseState(b)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v", got, err)
	}
	for i := 1; i < len(b); i++ {
		if _, err := parseState(b[:i]); !errors.Is(err, ErrState) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := parseState(append(b, 0)); !errors.Is(err, ErrState) {
		t.Fatalf("one byte more: %v", err)
	}
	b[0]++
	if _, err := Open("x", b, nil); !errors.Is(err, ErrState) {
		t.Fatalf("another version: %v", err)
	}
}

// TestStateKeptForEver reads a state that the first version wrote.
func TestStateKeptForEver(t *testing.T) {
	first, err := hex.DecodeString("010200043437313104686f73740131030000122f7661722f6c6f672f6170702e6a736f6e6c2a00" +
		"00010d097765622e6a736f6e6c80808080802087ad4b0101090162070500")
	must(t, err)
	got, err := parseState(first)
	must(t, err)
	if want := []identity{{"", "4711", ""}, {"host", "1", ""}}; !reflect.DeepEqual(got.writers, want) {
		t.Errorf("writers %q", got.writers)
	}
	if want := []entry{
		{writer: 0, path: "/var/log/app.jsonl", inode: 42},
		{writer: 1, path: "/var/log/app.web.jsonl", inode: 1 << 40, length: 1234567, doubt: true},
		{writer: 1, path: "/var/log/b", inode: 7, length: 5},
	}; !reflect.DeepEqual(got.entries, want) {
		t.Errorf("entries %+v", got.entries)
	}
}

// TestStateNow: State is what Sync returns after it, and settles nothing.
func TestStateNow(t *testing.T) {
	var recorded []byte
	s := openSet(t, filepath.Join(t.TempDir(), "{tag}"), nil, &Options{MaxOpen: 2, Record: func(b []byte) error {
		recorded = b
		return nil
	}})
	lengths := func(state []byte) (n []int64) {
		t.Helper()
		got, err := parseState(state)
		must(t, err)
		for _, e := range got.entries {
			n = append(n, e.length)
		}
		return n
	}
	for i := range 3 {
		add(t, s, "a", "1\n")
		add(t, s, "b", "22\n")
		must(t, s.Write())
		n := int64(i + 1)
		if got := lengths(s.State()); !slices.Equal(got, []int64{2 * n, 3 * n}) {
			t.Fatalf("lengths %d", got)
		}
	}
	add(t, s, "c", "333\n") // it takes the place of one of them
	must(t, s.Write())
	if got := lengths(recorded); !slices.Equal(got, []int64{0, 0, 0}) {
		t.Errorf("something was settled: %d", got)
	}
	state := s.State()
	if got := lengths(state); len(got) != 2 || got[1] != 4 {
		t.Errorf("lengths %d", got)
	}
	synced, err := s.Sync()
	must(t, err)
	again, err := s.Sync()
	must(t, err)
	for _, other := range [][]byte{synced, s.State(), again} {
		if !bytes.Equal(state, other) {
			t.Errorf("%x, then %x", state, other)
		}
	}
}

func BenchmarkState(b *testing.B) {
	for _, tags := range []int{1, 64} {
		b.Run(fmt.Sprintf("tags=%d", tags), func(b *testing.B) {
			s, err := Open(filepath.Join(b.TempDir(), "{tag}.jsonl"), nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for _, tag := range tagNames(tags) {
				if err := extend(s, tag, 0, "x\n"); err != nil {
					b.Fatal(err)
				}
			}
			if err := s.Write(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s.State()
			}
		})
	}
}

// FuzzState wants no panic and no memory beyond the bytes, and what can be read written the same
// again.
func FuzzState(f *testing.F) {
	f.Add(appendState(nil, &state{
		writers: []identity{{"h", "1", "/a/{tag}"}}, closed: true, point: Point{"here", 5},
		entries: []entry{
			{path: "/a/b", inode: 5, length: 6},
			{path: "/a/c", inode: 7, length: 8, doubt: true, tail: tail{at: 8, size: 2, sum: 9}, limit: 9},
		},
	}))
	f.Add([]byte("\x01\x01\x01h\x011\x01\x00\x00\x04/a/b\x05\x06\x00"))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 7})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b)
		if err != nil {
			return
		}
		again := appendState(nil, &s)
		s2, err := parseState(again)
		if err != nil || !reflect.DeepEqual(s2, s) || !bytes.Equal(again, appendState(nil, &s2)) {
			t.Fatalf("%x: %v", b, err)
		}
	})
}
