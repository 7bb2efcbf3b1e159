// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"fmt"
	"testing"
)

// Records of all lengths are the same wherever they are read to, and those that were read into room
// stay as they are while others are read.
func TestReaderRoom(t *testing.T) {
	j := mustOpen(t, t.TempDir(), &Options{SegmentBytes: 1 << 20})
	var want [][]byte
	for i := range 300 {
		size := []int{1, 100, 4000, scanLong - 1, scanLong, 50_000, 140_000, scanBlock, 300_000}[i*7%9]
		want = append(want, testRecord(uint64(i), size))
		if _, err := j.Append(want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Sync(bg, j.Stats().Last); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{0, 50_000, scanBlock - 1, 1 << 20} {
		r := mustReader(t, j, fmt.Sprint("r", most))
		room := [][]byte{nil, make([]byte, 0, 60_000)}
		var before, is []byte
		for i, w := range want {
			rec, ok, err := r.TryNextTo(room[i%2], most)
			if !ok || err != nil || !bytes.Equal(rec.Data, w) {
				t.Fatalf("most %d: record %d of %d bytes: %d bytes, %v, %v", most, i, len(w), len(rec.Data), ok, err)
			}
			if own := len(w) >= scanLong && int64(len(w)) <= most; rec.Own != own {
				t.Fatalf("most %d: %d bytes: own %v", most, len(w), rec.Own)
			}
			if !bytes.Equal(before, is) {
				t.Fatalf("most %d: the record before %d is another now", most, i)
			}
			before, is = nil, nil
			if rec.Own {
				room[i%2], before, is = rec.Data, w, rec.Data
			}
		}
		if _, ok, err := r.TryNextTo(nil, most); ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}
