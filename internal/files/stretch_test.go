// SPDX-License-Identifier: Apache-2.0

package files

import (
	"encoding/hex"
	"reflect"
	"testing"
)

// TestSharedGolden reads a state and the head of a latch that earlier code wrote.
func TestSharedGolden(t *testing.T) {
	state := sharedState{7, true, []namedLot{
		{"/log/a.jsonl", &lot{stretches: []stretch{{300, 0x01020304}, {5, 6}}, doubt: 1, place: place{1 << 40, 77}}},
		{"/log/b.jsonl", &lot{stretches: []stretch{{1, 2}}}},
	}}
	const bytes = "03070102000c2f6c6f672f612e6a736f6e6c8080808080204d0201ac020403020105060000000507622e6a736f6e6c000001000102000000"
	if got := hex.EncodeToString(appendShared(nil, &state)); got != bytes {
		t.Errorf("a state is %s, want %s", got, bytes)
	}
	b, err := hex.DecodeString(bytes)
	must(t, err)
	if got, err := parseShared(b); err != nil || !reflect.DeepEqual(got, state) {
		t.Errorf("%+v, %v", got, err)
	}
	head := latchHead{
		id: 9, number: 12, phase: made, inode: 5, offset: 1000, length: 40, sum: 0xfffefdfc,
		void: []uint64{3, 11},
	}
	b = head.append(nil)
	const sum = "5350574c4154434809000000000000000c0000000000000001000000000000000500000000000000" +
		"e8030000000000002800000000000000fcfdfeff0000000003000000000000000c30e03400000000"
	if got := hex.EncodeToString(b[:72]) + hex.EncodeToString(b[latchCheck:]); len(b) != latchLen || got != sum {
		t.Errorf("a head of %d bytes is %s, want %s", len(b), got, sum)
	}
	if got, ok := parseLatch(b); !ok || !reflect.DeepEqual(got, head) {
		t.Errorf("%+v, %v", got, ok)
	}
}

// TestMergeShared: of several states of a process the last counts.
func TestMergeShared(t *testing.T) {
	old, last := appendShared(nil, &sharedState{number: 3}), appendShared(nil, &sharedState{number: 200, closed: true})
	for _, states := range [][][]byte{{old, last}, {last, old}, {nil, last}, {last}} {
		if got, err := Merge(states...); err != nil || !reflect.DeepEqual(got, last) {
			t.Errorf("%x: %x, %v", states, got, err)
		}
	}
	if got, err := Merge(old, appendState(nil, &state{closed: true})); err == nil || !reflect.DeepEqual(got, old) {
		t.Errorf("with another kind: %x, %v", got, err)
	}
}
