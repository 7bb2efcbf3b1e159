// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"testing"
)

func TestBasic(t *testing.T) {
	for _, dir := range []string{"", sharedDir(t)} {
		r, err := Open(&Options{Dir: dir, Size: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		var h Hint
		for i := range 20000 {
			if _, err := r.Append(&h, Now, fmt.Appendf(nil, "record %d", i)); err != nil {
				t.Fatal(i, err)
			}
			if i%100 != 99 {
				continue
			}
			last := uint64(0)
			for n := i - 99; ; n++ {
				rec, ok, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					if n != i+1 {
						t.Fatal(n, i)
					}
					break
				}
				if string(rec.Data) != fmt.Sprintf("record %d", n) {
					t.Fatalf("%q", rec.Data)
				}
				last = rec.Key
			}
			r.Cut(last)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
