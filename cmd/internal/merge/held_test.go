// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHeld: however little room there is, what is released is in order and all there.
func TestHeld(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, most := range []int{0, 1000, 50_000, 1 << 30} {
		s := &spool{base: 1 << 10}
		h := &held{spool: s, limit: most}
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
			err := h.release(func(l *heldLine) error {
				if w := all[i]; l.time != w.time || l.n != w.n || l.number != w.number || !bytes.Equal(l.text, w.text) {
					t.Fatalf("seed %d, room for %d: line %d is of %d, file %d, number %d", seed, most, i, l.time, l.n,
						l.number)
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

// TestDir: what a directory gives is sorted, and what is wrong there is told.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	var told []string
	o := &Options{Until: time.Unix(0, 9), Warn: func(path string, line int, err error) {
		told = append(told, fmt.Sprintf("%v %d %v", path == dir, line, err))
	}}
	o.Dir = func(path string, yield Yield) error {
		line := []byte("{ }")
		for i, ns := range []int64{5, 9, 3, math.MinInt64, 3} {
			line[1] = byte('0' + i)
			if err := yield(ns, line); err != nil {
				return err
			}
		}
		return errors.Join(yield(1, make([]byte, MaxLine+1)), errors.New("broken"))
	}
	var got strings.Builder
	res, err := Run(t.Context(), &got, []string{dir}, o)
	if want := "{3}\n{2}\n{4}\n{0}\n"; err != nil || got.String() != want ||
		res != (Result{Written: 4, Left: 1, Broken: 2}) {
		t.Errorf("%q, %+v, %v", got.String(), res, err)
	}
	if want := []string{"true 6 longer than 1048576 bytes", "true 0 broken"}; !slices.Equal(told, want) {
		t.Errorf("told are %q", told)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := Run(ctx, &got, []string{dir}, o); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}
