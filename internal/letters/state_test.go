// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"reflect"
	"testing"

	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

// TestStateGone: the cursor, the marks of outputs and what stays in spite of them.
func TestStateGone(t *testing.T) {
	s := newState()
	s.cursor = 10
	s.marks["a"] = 30
	if !s.keep(20) || !s.keep(25) {
		t.Fatal("no room to keep")
	}
	s.unkeep(25)
	s.unkeep(26)
	for _, tc := range []struct {
		output string
		pos    journal.Position
		want   bool
	}{
		{"a", 10, true},
		{"b", 10, true},
		{"a", 11, true},
		{"a", 20, false},
		{"a", 25, true},
		{"a", 30, true},
		{"a", 31, false},
		{"b", 11, false},
		{"", 11, false},
	} {
		if got := s.gone(tc.output, tc.pos); got != tc.want {
			t.Errorf("%s at %d gone: %v", tc.output, tc.pos, got)
		}
	}
	s.advance(20)
	if len(s.kept) != 0 || s.marks["a"] != 30 || !s.gone("a", 20) {
		t.Errorf("at 20: %+v", s)
	}
	if s.advance(30); len(s.marks) != 0 {
		t.Errorf("at 30: %+v", s)
	}
}

// TestStateBounds: keys are forgotten, and what stays is refused, before the state grows without
// end.
func TestStateBounds(t *testing.T) {
	s := newState()
	var last key
	for i := range 3 * maxRecent {
		last = key{byte(i), byte(i >> 8)}
		s.remember(last)
	}
	if len(s.recent) != maxRecent || s.recent[maxRecent-1] != last {
		t.Errorf("%d keys, the last %x", len(s.recent), s.recent[len(s.recent)-1])
	}
	for i := range maxKept {
		if !s.keep(journal.Position(i + 1)) {
			t.Fatal("refused at", i)
		}
	}
	if !s.keep(1) || s.keep(maxKept+1) || len(s.kept) != maxKept {
		t.Errorf("%d stay", len(s.kept))
	}
}

func FuzzState(f *testing.F) {
	s := newState()
	s.marks["a"], s.kept, s.recent = 77, []journal.Position{50, 60}, []key{{1}, {2}}
	f.Add(s.append(nil), uint64(40))
	f.Add(s.append(nil), uint64(55))
	f.Add(msgpack.AppendMapHeader(nil, 0), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		s, err := parseState(b, journal.Position(at))
		if err != nil {
			return
		}
		s.gone("a", 1)
		again, err := parseState(s.append(nil), journal.Position(at))
		if err != nil || len(s.kept)+len(again.kept) > 0 && !reflect.DeepEqual(s.kept, again.kept) ||
			!reflect.DeepEqual(s.marks, again.marks) ||
			!reflect.DeepEqual(s.recent, again.recent) || s.store != again.store {
			t.Errorf("%+v, then %+v, %v", s, again, err)
		}
	})
}
