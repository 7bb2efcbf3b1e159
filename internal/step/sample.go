// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
)

// A Sample keeps a share of the events.
type Sample struct {
	Share float64 `help:"How many of them are kept: 0.1 is one of ten." required:"true"`
	By    string  `help:"A field: events with the same value are kept together, or none is. Without it, or where it is missing, each counts for itself."`
}

func newSample(s *Sample, wrong func(error, ...any)) (holds func(*event) bool) {
	if !(s.Share > 0 && s.Share <= 1) {
		wrong(errors.New("the share is more than 0 and at most 1"), "share")
	}
	var by path
	if s.By != "" {
		by = pathOf(s.By, wrong, "by")
	}
	return func(e *event) bool {
		h := mix(mix(e.at) + uint64(e.index))
		if by != nil {
			var ok bool
			if e.scratch, ok = appendText(e.scratch[:0], e.get(by)); ok {
				h = hashOf(e.scratch)
			}
		}
		return float64(h>>11)/(1<<53) < s.Share
	}
}

// mix makes of numbers that are near each other some that are not.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashOf is the same for a text: in all versions, for what is kept must not change with one.
func hashOf(text []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range text {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return mix(h)
}
