// SPDX-License-Identifier: Apache-2.0

package window

import (
	"testing"

	"github.com/spillwaylog/spillway/msgpack"
)

// FuzzSound: what is said to be sound is one map that every reader of entries takes for one.
func FuzzSound(f *testing.F) {
	f.Add([]byte{0x82, 0xa1, 'n', 0xce, 0, 0, 0, 1, 0xa1, 'p', 0xa3, 'x', 'x', 'x'})
	f.Add([]byte{0x80})
	f.Add([]byte{0xde, 0, 1, 0xa0, 0xc0})
	f.Add([]byte{0xdf, 0, 0, 0, 1, 0x01})
	f.Add(make([]byte, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s msgpack.Scanner
		s.Reset(msgpack.Limits{Depth: deepest})
		n, done, err := s.Scan(b)
		want := done && err == nil && n == len(b) && (b[0]&0xf0 == 0x80 || b[0] == 0xde || b[0] == 0xdf)
		if got := sound(b); got != want {
			t.Fatalf("%x: %t", b, got)
		}
	})
}
