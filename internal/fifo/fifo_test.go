// SPDX-License-Identifier: Apache-2.0

package fifo

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestQueue pushes and pops beside a slice, through lengths at which memory is used again.
func TestQueue(t *testing.T) {
	var q Queue[*int]
	var want []*int
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 100_000 {
		if pushes := random.IntN(400) < 200+round/500%100-50; pushes || len(want) == 0 {
			v := &round
			q.Push(v)
			want = append(want, v)
		} else {
			if got := q.Pop(); got != want[0] {
				t.Fatalf("round %d: popped another one", round)
			}
			want = slices.Delete(want, 0, 1)
		}
		if q.Len() != len(want) {
			t.Fatalf("round %d: %d, want %d", round, q.Len(), len(want))
		}
		if len(want) > 0 {
			i := random.IntN(len(want))
			if q.Front() != want[0] || *q.At(i) != want[i] {
				t.Fatalf("round %d: not in order", round)
			}
		}
		// What was popped is kept alive by nothing, and takes no more than half.
		for i, v := range q.all[:cap(q.all)] {
			if (i < q.head || i >= len(q.all)) && v != nil {
				t.Fatalf("round %d: what was popped is still there", round)
			}
		}
		if q.head > 64 && q.head*2 > len(q.all) {
			t.Fatalf("round %d: %d of %d are nothing", round, q.head, len(q.all))
		}
	}
}
