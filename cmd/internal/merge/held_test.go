// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestHeld: however little room there is, what is released is in order and all there.
func TestHeld(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, most := range []int{0, 1000, 50_000, 1 << 30} {
		s := &spool{base: 1 << 10}
		h := &held{spool: s, most: most}
		var all []heldLine
		for i := range 1000 {
			l := heldLine{r.Int64N(300) - 150, r.IntN(3), i, []byte(strings.Repeat("x", r.IntN(3000)*r.IntN(2)))}
			all = append(all, l)
			if err := h.push(l.time, l.n, l.number, l.text); err != nil {
				t.Fatal(err)
			}
			if len(h.runs) > maxRuns+1 || h.bytes > most {
				t.Fatalf("seed %d: %d runs, %d bytes with room for %d", seed, len(h.runs), h.bytes, most)
			}
		}
		if (most == 1<<30) != (s.file == nil) {
			t.Errorf("room for %d bytes, %d in the temporary file", most, s.size)
		}
		slices.SortFunc(all, func(a, b heldLine) int {
			if a.before(&b) {
				return -1
			}
			return 1
		})
		for i := range all {
			err := h.release(func(l heldLine) error {
				if want := all[i]; fmt.Sprint(l) != fmt.Sprint(want) {
					t.Fatalf("seed %d, room for %d: line %d is of %d, file %d, number %d", seed, most, i, l.time, l.n, l.number)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if !h.empty() || h.bytes != 0 {
			t.Errorf("%d bytes are left", h.bytes)
		}
		s.close()
	}
}
