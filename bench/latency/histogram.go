// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "math/bits"

// A histogram counts durations in buckets of at most 1/32 of their value, from 1 ns to 18 minutes.
// It allocates nothing.
type histogram struct {
	counts [41 << 5]uint64
	n      uint64
	max    uint64
}

func (h *histogram) add(ns uint64) {
	h.counts[bucket(ns)]++
	h.n++
	h.max = max(h.max, ns)
}

// addCorrected adds a call, and those that a goroutine of fixed pace could not make meanwhile: a
// call of 10 intervals stands for ten calls which would have waited 10, 9, 8 … intervals (Gil
// Tene's correction of coordinated omission, as in HdrHistogram).
func (h *histogram) addCorrected(ns, interval uint64) {
	h.add(ns)
	for ns > interval {
		ns -= interval
		h.add(ns)
	}
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// quantile is the upper bound of the bucket in which the quantile lies.
func (h *histogram) quantile(q float64) uint64 {
	want := uint64(q * float64(h.n))
	for i, n := range h.counts {
		if n > want {
			return min(limit(i), h.max)
		}
		want -= n
	}
	return h.max
}

// bucket is exact below 64 and has 32 steps per power of two above.
func bucket(ns uint64) int {
	if ns < 64 {
		return int(ns)
	}
	shift := bits.Len64(ns) - 6
	return min(shift<<5+int(ns>>shift), len(histogram{}.counts)-1)
}

// limit is the largest duration of a bucket.
func limit(i int) uint64 {
	if i < 64 {
		return uint64(i)
	}
	shift := i>>5 - 1
	return (uint64(i)-uint64(shift)<<5+1)<<shift - 1
}
