// SPDX-License-Identifier: Apache-2.0

package window

import "testing"

// The ids of runs are what a successor makes of the first one's.
func TestRunIDs(t *testing.T) {
	ids := make([][IDLen]byte, 1<<16)
	nameRuns(len(ids), func(i int) *[IDLen]byte { return &ids[i] })
	raw, _, _ := ParseRun(ids[0])
	for i, is := range ids {
		var id [IDLen]byte
		RunID(&id, raw, i)
		if got, n, ok := ParseRun(is); is != id || got != raw || n != i || !ok {
			t.Fatalf("run %d is %s, not %s; parsed: %x %d %t", i, is, id, got, n, ok)
		}
	}
	for _, text := range []string{"", "not base64, by any means", "AAAAAAAAAAAAAAAAAAAAAAAA"} {
		var id [IDLen]byte
		copy(id[:], text)
		if _, _, ok := ParseRun(id); ok {
			t.Errorf("%q is the id of a run", text)
		}
	}
}
