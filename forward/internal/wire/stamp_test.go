// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/msgpack"
)

// The header of the map grows and shrinks with what is in it.
func TestSourceCounts(t *testing.T) {
	src := &Stamp{names: []string{"x", "y"}, pairs: vectors.Unhex("a1 78 01 a1 79 02"), count: 2}
	for _, n := range []int{0, 1, 13, 14, 15, 16, 17, 65533, 65534, 65535, 65536} {
		for _, forged := range []int{0, 1, 3} {
			record := msgpack.AppendMapHeader(nil, n+forged)
			for i := range n + forged {
				key := "k"
				if i < forged {
					key = "y"
				}
				record = msgpack.AppendInt(msgpack.AppendString(record, key), int64(i))
			}
			out, end := src.appendRecord(nil, record)
			tok, _, err := msgpack.ReadToken(out)
			if k, skip := msgpack.Skip(out); end != len(record) || err != nil || skip != nil || k != len(out) ||
				tok.Len != n+2 || len(out) > len(record)+src.MaxBytes() {
				t.Fatalf("%d and %d forged: %d pairs, %d of %d bytes, %v, %v", n, forged, tok.Len, k, len(out), err,
					skip)
			}
			if y := valuesOf(t, out, "y"); string(y) != "\x02" {
				t.Fatalf("%d and %d forged: y is %x", n, forged, y)
			}
		}
	}
}

// valuesOf returns what stands under a key, as often as it is there, in a map whose keys are str.
func valuesOf(t *testing.T, record []byte, key string) (values []byte) {
	pairs, at, err := msgpack.ReadToken(record)
	for range pairs.Len {
		if err != nil {
			t.Fatal(err)
		}
		name, _, n, _ := msgpack.ReadBytes(record[at:])
		at += n
		n, err = msgpack.Skip(record[at:])
		if string(name) == key {
			values = append(values, record[at:at+n]...)
		}
		at += n
	}
	return values
}
