// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "testing"

func TestHistogram(t *testing.T) {
	for _, ns := range []uint64{0, 1, 63, 64, 65, 127, 128, 1000, 123456789, 1 << 40} {
		i := bucket(ns)
		if top := limit(i); ns > top || ns >= 64 && float64(top) > float64(ns)*(1+1.0/32) {
			t.Errorf("%d is in bucket %d, which ends at %d", ns, i, top)
		}
		if ns > 0 && limit(bucket(ns)-1) >= ns {
			t.Errorf("%d is in bucket %d, but the one before ends at %d", ns, i, limit(i-1))
		}
	}
	var h histogram
	h.addCorrected(100, 40) // and 60, 20
	for range 96 {
		h.add(1)
	}
	if h.n != 99 || h.max != 100 || h.quantile(0.5) != 1 || h.quantile(0.99) != 100 {
		t.Errorf("n %d, max %d, quantiles %d %d", h.n, h.max, h.quantile(0.5), h.quantile(0.99))
	}
}
