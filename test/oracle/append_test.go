// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"

	"github.com/tinylib/msgp/msgp"
	vmihailenco "github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// TestAppend has the others read what package msgpack wrote.
func TestAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := values(3).Draw(t, "value")
		b := appendValue(nil, v)

		var got any
		if err := vmihailenco.Unmarshal(b, &got); err != nil {
			t.Fatalf("vmihailenco reads % x: %v", b, err)
		}
		if !same(v, got) {
			t.Fatalf("vmihailenco reads %#v, want %#v", got, v)
		}

		got, rest, err := msgp.ReadIntfBytes(b)
		if err != nil || len(rest) > 0 {
			t.Fatalf("msgp reads % x: %v, %d bytes left", b, err, len(rest))
		}
		if !same(v, got) {
			t.Fatalf("msgp reads %#v, want %#v", got, v)
		}
	})
}
