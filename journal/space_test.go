// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// TestLargeRecords: whatever fits in an empty journal is appended sooner or later, however full it is and however large what came before, if someone reads.
func TestLargeRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		j := mustOpen(t, "d", &Options{FS: newCrashFS(rand.New(rand.NewPCG(1, 1))), SegmentBytes: minSegmentBytes, MaxBytes: limit})
		defer j.Close()
		r := mustReader(t, j, "r")
		for i, size := range []int{100, limit - dataStart - recordHeader, 1000, 900 << 10, limit - dataStart - recordHeader, 300 << 10, 300 << 10, 300 << 10, 300 << 10, 10} {
			rec := testRecord(uint64(i), size)
			for {
				_, err := j.Append(rec)
				if err == nil {
					break
				}
				if !errors.Is(err, ErrFull) {
					t.Fatal(err)
				}
				// Someone reads what is there, then there is room.
				mustSync(t, j, j.Stats().Last)
				_, last := readAll(t, r)
				if last > 0 {
					if err := r.Commit(last, nil); err != nil {
						t.Fatal(err)
					}
				}
				<-j.Space()
			}
			mustSync(t, j, j.Stats().Last)
			if i%2 == 0 {
				got, last := readAll(t, r)
				if len(got) == 0 || !bytes.Equal(got[len(got)-1], rec) {
					t.Fatalf("record %d is not there", i)
				}
				if err := r.Commit(last, nil); err != nil {
					t.Fatal(err)
				}
			}
			if b := j.Stats().Bytes; b > limit {
				t.Fatalf("%d bytes on disk", b)
			}
		}
		if _, err := j.Append(make([]byte, limit-dataStart-recordHeader+1)); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	})
}
