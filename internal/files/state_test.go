// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
)

func TestState(t *testing.T) {
	writers := []identity{{}, {"host", "1"}, {"", "4711"}}
	entries := []entry{
		{writer: 0, path: "/var/log/app.jsonl", inode: 1, length: 0},
		{writer: 2, path: "/var/log/app.web.jsonl", inode: math.MaxUint64, length: math.MaxInt64, doubt: true},
		{writer: 1, path: "/var/log/app", inode: 7, length: 5},
		{writer: 1, path: "x", inode: 7, length: 5},
	}
	b := appendState(nil, writers, entries)
	w, e, err := parseState(b)
	if err != nil || !reflect.DeepEqual(w, writers) || !reflect.DeepEqual(e, entries) {
		t.Fatalf("got %v, %v, %v", w, e, err)
	}
	for i := 1; i < len(b); i++ {
		if _, _, err := parseState(b[:i]); !errors.Is(err, ErrState) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	if _, _, err := parseState(append(b, 0)); !errors.Is(err, ErrState) {
		t.Fatalf("one byte more: %v", err)
	}
	b[0]++
	if _, err := Open("x", b, nil); !errors.Is(err, ErrState) {
		t.Fatalf("another version: %v", err)
	}
}

// FuzzState wants no panic and no memory beyond the bytes, and what can be read written the same again.
func FuzzState(f *testing.F) {
	f.Add(appendState(nil, []identity{{"h", "1"}}, []entry{{path: "/a/b", inode: 5, length: 6}, {path: "/a/c", inode: 7, length: 8, doubt: true}}))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 7})
	f.Fuzz(func(t *testing.T, b []byte) {
		writers, entries, err := parseState(b)
		if err != nil {
			return
		}
		again := appendState(nil, writers, entries)
		w, e, err := parseState(again)
		if err != nil || !reflect.DeepEqual(w, writers) || !reflect.DeepEqual(e, entries) || !bytes.Equal(again, appendState(nil, w, e)) {
			t.Fatalf("%x: %v", b, err)
		}
	})
}
