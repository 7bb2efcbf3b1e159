// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"reflect"
	"testing"
)

func TestMerge(t *testing.T) {
	one := appendState(nil, []identity{{"", "1"}}, []entry{{path: "/a", inode: 1, length: 10}, {path: "/b", inode: 2, length: 5}})
	two := appendState(nil, []identity{{"", "2"}, {"", "1"}}, []entry{
		{path: "/c", inode: 3, length: 1},
		{writer: 1, path: "/a", inode: 1, length: 7, doubt: true}, // an older position of the same file
		{writer: 1, path: "/b", inode: 2, length: 9},
		{writer: 1, path: "/a", inode: 4, length: 2}, // another file that was there once
	})
	got, err := Merge(one, nil, []byte("broken"), two)
	if !errors.Is(err, ErrState) {
		t.Errorf("the broken one: %v", err)
	}
	writers, entries, err := parseState(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := []identity{{"", "1"}, {"", "2"}}; !reflect.DeepEqual(writers, want) {
		t.Errorf("writers %v", writers)
	}
	if want := []entry{
		{path: "/a", inode: 1, length: 10},
		{path: "/b", inode: 2, length: 9},
		{writer: 1, path: "/c", inode: 3, length: 1},
		{path: "/a", inode: 4, length: 2},
	}; !reflect.DeepEqual(entries, want) {
		t.Errorf("entries %+v", entries)
	}
	if got, err := Merge(nil, nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}
