// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// TestFetchAtOnce: what was just put into a spill is read when it is durable, and not later: the
// same goroutine puts the next window there. The time is that of the bubble.
func TestFetchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(&Options{
			Name: "test", Dir: t.TempDir(), MaxDisk: 1 << 20, BootID: func() string { return "" },
			Report: func(err error) { t.Error(err) },
		})
		sp, err := f.Make("", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer sp.Close()
		for i := range 5 {
			at := make([]journal.Position, 1)
			if err := sp.Append([]forward.Chunk{{Tag: "t", Entries: []byte{0x92, 0x00, 0x80}, Events: 1}},
				at); err != nil {
				t.Fatal(err)
			}
			if err := sp.Flush(at[0]); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			chunks, err := sp.Fetch(at)
			if len(chunks) != 1 || chunks[0] == nil || err != nil {
				t.Fatalf("%d: %v, %v", i, chunks, err)
			}
			if took := time.Since(began); took >= retryAfter {
				t.Errorf("%d came after %v", i, took)
			}
		}
	})
}
