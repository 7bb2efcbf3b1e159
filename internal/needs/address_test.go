// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		a := Address()
		if seen[a] {
			t.Errorf("%s twice", a)
		}
		seen[a] = true
		if c, err := net.Dial("tcp", a); err == nil {
			c.Close()
			t.Errorf("somebody listens at %s", a)
		}
		for range 3 {
			l, err := net.Listen("tcp", a)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
}
