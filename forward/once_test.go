// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// What was walked when a message was found is not walked when a chunk is made of it.
func TestTakeWalksNothing(t *testing.T) {
	for name, when := range vectors.Times {
		for _, option := range []string{"", "81" + hexChunk} {
			header := "93"
			if option != "" {
				header = "94"
			}
			one := unhex(header + "a1 74" + when + vectors.Record + option)
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
				if f != wire.FoundMessage || err != nil {
					t.Fatalf("%s: %v, %v", name, f, err)
				}
				d := &c.dec
				at, end := d.Event()
				var s wire.Shape
				d.Shape(rest, &s)
				record := at + s.Record
				vectors.Spoil(rest[record+1 : end])
				if d.Mode == wire.ModeMeta && rest[record-1] != wire.CodeMap0 {
					vectors.Spoil(rest[record-2 : record]) // within the metadata
				}
				if err := c.take(rest[:d.Pos]); err != nil {
					t.Fatal(err)
				}
				c.r += int(d.Pos)
				d.Reset()
			}
			if err := c.flush(); err != nil || events != 2 ||
				bytes.Count(got, []byte{vectors.Poison}) < 2*(len(unhex(vectors.Record))-1) {
				t.Errorf("%s, option %q: %v, %d events: %x", name, option, err, events, got)
			}
		}
	}
}
