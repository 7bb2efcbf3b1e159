// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"reflect"
	"testing"
)

func TestMerge(t *testing.T) {
	one := appendState(nil, &state{
		writers: []identity{{"", "1", ""}},
		entries: []entry{{path: "/a", inode: 1, length: 10}, {path: "/b", inode: 2, length: 5}},
	})
	two := appendState(nil, &state{writers: []identity{{"", "2", ""}, {"", "1", ""}}, entries: []entry{
		{path: "/c", inode: 3, length: 1},
		{writer: 1, path: "/a", inode: 1, length: 7, doubt: true}, // an older position of the same file
		{writer: 1, path: "/b", inode: 2, length: 9},
		{writer: 1, path: "/a", inode: 4, length: 2}, // another file that was there once
	}, closed: true, point: Point{"here", 3}})
	got, err := Merge(one, nil, []byte("broken"), two)
	if !errors.Is(err, ErrState) {
		t.Errorf("the broken one: %v", err)
	}
	merged, err := parseState(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := []identity{{"", "1", ""}, {"", "2", ""}}; !reflect.DeepEqual(merged.writers, want) {
		t.Errorf("writers %v", merged.writers)
	}
	if !merged.closed || merged.point != (Point{"here", 3}) {
		t.Errorf("closed %v, point %v", merged.closed, merged.point)
	}
	if want := []entry{
		{path: "/a", inode: 1, length: 10},
		{path: "/b", inode: 2, length: 9},
		{writer: 1, path: "/c", inode: 3, length: 1},
		{path: "/a", inode: 4, length: 2},
	}; !reflect.DeepEqual(merged.entries, want) {
		t.Errorf("entries %+v", merged.entries)
	}
	if got, err := Merge(nil, nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}
