// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramBounds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var h, first, second histogram
	var all []time.Duration
	for i := range 50_000 {
		d := time.Duration(random.Int64N(1 << random.IntN(45)))
		all = append(all, d)
		h.add(d)
		if i%3 == 0 {
			first.add(d)
		} else {
			second.add(d)
		}
	}
	slices.Sort(all)
	for _, q := range []float64{0, .001, .01, .1, .5, .9, .99, .999, .9999, 1} {
		exact := all[max(0, int(q*float64(len(all))+.999999)-1)]
		got := h.quantile(q)
		if got < exact || float64(got) > float64(exact)*(1+1./32) {
			t.Errorf("quantile %v is %v, want %v or at most 1/32 more", q, got, exact)
		}
	}
	first.merge(&second)
	first.sum = h.sum // floats, added in another order
	if first != h {
		t.Error("two histograms merged are not the one of everything")
	}
	if h.max != all[len(all)-1] || h.n != uint64(len(all)) {
		t.Errorf("max %v, n %d", h.max, h.n)
	}
}

func TestHistogramBuckets(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 63, 64, 65, 127, 128, 1 << 20, 1<<20 - 1, time.Hour, 1000 * time.Hour} {
		i := bucketOf(d)
		if limitOf(i) < d {
			t.Errorf("%v is in bucket %d, which ends at %v", d, i, limitOf(i))
		}
		if i > 0 && limitOf(i-1) >= d {
			t.Errorf("%v is in bucket %d, and the one before ends at %v", d, i, limitOf(i-1))
		}
	}
	for i := 1; i < buckets; i++ {
		if bucketOf(limitOf(i)) != i || bucketOf(limitOf(i-1)+1) != i {
			t.Fatalf("bucket %d does not begin behind the one before it, or does not end at its limit", i)
		}
	}
	var h histogram
	if h.quantile(.5) != 0 || h.mean() != 0 {
		t.Error("nothing has no quantiles")
	}
	h.add(-time.Second) // a clock that was set back
	h.add(1 << 62)      // beyond the last bucket
	if h.quantile(0) != 0 || h.quantile(1) != 1<<62 && h.quantile(1) != limitOf(buckets-1) {
		t.Errorf("%v to %v", h.quantile(0), h.quantile(1))
	}
}
