// SPDX-License-Identifier: Apache-2.0

package record

import (
	"log/slog"
	"slices"
	"testing"
)

// TestAttrsOf also says whether package slog still keeps records as they are read here: if not,
// they cost more, and no more than that.
func TestAttrsOf(t *testing.T) {
	if !recordKnown {
		t.Error("slog.Record has another layout")
	}
	known := recordKnown
	defer func() { recordKnown = known }()
	for _, recordKnown = range []bool{known, false} {
		for n := range 9 {
			var r slog.Record
			var want []slog.Attr
			for i := range n {
				want = append(want, slog.Int("i", i))
			}
			r.AddAttrs(want...)
			first, rest := AttrsOf(&r)
			if got := slices.Concat(first, rest); !slices.EqualFunc(got, want, slog.Attr.Equal) {
				t.Errorf("known %v: %v, want %v", recordKnown, got, want)
			}
		}
	}
}
