// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math"
	"math/bits"
	"time"
)

// A histogram counts durations in buckets: exact below 64 ns, above in 32 steps for each power of
// two, so that no quantile is more than 1/32 too high, and none too low. It takes 12 KiB and
// reaches to 1,000 hours.
type histogram struct {
	counts [buckets]uint64
	n      uint64
	sum    float64 // ns
	max    time.Duration
}

const (
	stepBits = 5 // 32 steps
	linear   = 2 << stepBits
	buckets  = (53 - stepBits) << stepBits
)

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)]++
	h.n++
	h.sum += float64(d)
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.n += o.n
	h.sum += o.sum
	h.max = max(h.max, o.max)
}

// quantile returns the least duration that a share q of all do not exceed, or a little more; 0
// where there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(h.n)))
	for i, n := range h.counts {
		if n >= rank && n > 0 {
			return min(limitOf(i), h.max)
		}
		rank -= n
	}
	return h.max
}

func (h *histogram) mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.n))
}

func bucketOf(d time.Duration) int {
	if d < linear {
		return int(d)
	}
	shift := bits.Len64(uint64(d)) - stepBits - 1
	return min(shift<<stepBits+int(d>>shift), buckets-1)
}

// limitOf is the longest duration of a bucket.
func limitOf(i int) time.Duration {
	if i < linear {
		return time.Duration(i)
	}
	shift := i>>stepBits - 1
	return time.Duration(i-shift<<stepBits+1)<<shift - 1
}
