// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"testing"
)

// TestMaxRecord: what is longer than the longest record is damage, and what is behind it is read.
func TestMaxRecord(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, nil)
	long := bytes.Repeat([]byte("x"), 1<<20)
	for _, rec := range [][]byte{[]byte("before"), long, []byte("behind")} {
		mustSync(t, j, mustAppend(t, j, rec))
	}
	must(t, j.Close())
	told := 0
	j = mustOpen(t, dir, &Options{MaxRecord: 1<<20 - 1, Report: func(err error) {
		if errors.Is(err, ErrCorrupt) {
			told++
		}
	}})
	r := mustReader(t, j, "r")
	for _, want := range []string{"before", "behind"} {
		rec, ok, err := r.TryNext()
		if err != nil || !ok || string(rec.Data) != want {
			t.Fatalf("%d bytes, %t, %v; want %q", len(rec.Data), ok, err, want)
		}
	}
	if told == 0 {
		t.Error("nothing was told")
	}
	must(t, r.Close())
	must(t, j.Close())
}
