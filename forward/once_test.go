// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// Bytes that were walked over are overwritten with the byte that MessagePack never uses: whoever
// walks over them again stumbles.
const poison = 0xc1

func poisoned(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// onceRecord is a record of all that a walk steps into.
const onceRecord = "84 a1 6d a1 62 a1 6e 93 01 02 d9 03 616263 a1 6f 82 05 c4 02 0102 06 c7 02 05 0102 a1 70 de 0001 a1 71 cb 0000000000000000"

var onceTimes = map[string]string{
	"usual": hexTime, "uint32": "ce 55ece6f8", "ext8": "c7 08 00 55ece6f8 075bcd15", "float": "cb 41d57b39be07e6b7", "zero": "00",
	"empty metadata": "92 " + hexTime + " 80", "metadata": "92 " + hexTime + " 82 a1 6d 92 a1 78 05 a1 6e d9 02 6161",
	"zero and metadata": "92 00 81 a1 6d 91 05",
}

// What was walked when a message was found is not walked when a chunk is made of it.
func TestTakeWalksNothing(t *testing.T) {
	for name, when := range onceTimes {
		for _, option := range []string{"", "81" + hexChunk} {
			header := "93"
			if option != "" {
				header = "94"
			}
			one := unhex(header + "a1 74" + when + onceRecord + option)
			b := append(bytes.Clone(one), one...)
			var got []byte
			events := 0
			s := &Server{Handler: HandlerFunc(func(_ context.Context, c *Chunk) error {
				got = append(got, c.Entries...)
				events += c.Events
				return nil
			})}
			s.init()
			c := s.admit(&script{}, &s.Endpoint, nil)
			c.buf = &budget.Buffer{B: b}
			c.buf.Share()
			c.buf.Share() // not the pool's
			c.w = len(b)
			c.takeGroup()
			for c.r < c.w {
				rest := b[c.r:]
				f, _, err := c.dec.Next(rest)
				if f != wire.Message || err != nil {
					t.Fatalf("%s: %v, %v", name, f, err)
				}
				d := &c.dec
				at, end := d.Event()
				var s wire.Shape
				d.Shape(rest, &s)
				record := at + s.Record
				poisoned(rest[record+1 : end])
				if d.Mode == wire.ModeMeta && rest[record-1] != wire.CodeMap0 {
					poisoned(rest[record-2 : record]) // within the metadata
				}
				if err := c.take(rest[:d.Pos]); err != nil {
					t.Fatal(err)
				}
				c.r += int(d.Pos)
				d.Reset()
			}
			if err := c.flush(); err != nil || events != 2 || bytes.Count(got, []byte{poison}) < 2*(len(unhex(onceRecord))-1) {
				t.Errorf("%s, option %q: %v, %d events: %x", name, option, err, events, got)
			}
		}
	}
}
