// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

func TestAllocs(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector allocates")
	}
	j := mustOpen(t, t.TempDir(), nil)
	head, body, tail := make([]byte, 30), make([]byte, 500), make([]byte, 20)
	appendOne := func() {
		if _, err := j.Append(head, body, tail); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 { // the pool fills, batches grow
		appendOne()
	}
	if n := testing.AllocsPerRun(10_000, appendOne); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
	flush := func() {
		p, err := j.Append(head, body, tail)
		if err == nil {
			err = j.Flush(bg, p)
		}
		if err == nil {
			err = j.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(2000, flush); n != 0 {
		t.Errorf("Append, Flush and Check allocate %v times", n)
	}
	mustSync(t, j, j.Stats().Last)
	r := mustReader(t, j, "r")
	if _, _, err := r.TryNext(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(5000, func() {
		if _, ok, err := r.TryNext(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("TryNext allocates %v times", n)
	}
}
