// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPieces: the pieces of a chunk are its entries, whole, in order, the same however they come, and
// only one that is larger than a piece makes a larger one.
func TestPieces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const most = 8 << 10
	for range 50 {
		var entries []byte
		events := 1 + r.IntN(200)
		for range events {
			n := r.IntN(300)
			if r.IntN(20) == 0 {
				n = r.IntN(5 * most)
			}
			entries = append(entries, sized("e", n)...)
		}
		var cuts [3][]int
		for i, how := range []string{"", "gzip", "zstd"} {
			c := &Chunk{Entries: entries, Events: events}
			if how != "" {
				c = &Chunk{Compressed: compressedBy(t, how, entries), Compression: how, Events: events}
			}
			var z Inflater
			larger, seen := 0, 0
			p := Pieces{Large: func() { larger++ }}
			p.Begin(&z, c, most)
			var all, buf []byte
			for last := false; !last; {
				var n int
				var err error
				if buf, n, last, err = p.Next(buf); err != nil {
					t.Fatal(err)
				}
				if len(buf) > most && n > 1 {
					t.Fatalf("a piece of %d bytes has %d entries", len(buf), n)
				}
				all = append(all, buf...)
				cuts[i] = append(cuts[i], len(all))
				seen += n
			}
			if !bytes.Equal(all, entries) || seen != events && len(cuts[i]) > 1 {
				t.Fatalf("%s: %d bytes and %d entries of %d and %d", how, len(all), seen, len(entries), events)
			}
		}
		for i := range cuts[1:] {
			if !slices.Equal(cuts[0], cuts[i+1]) {
				t.Fatalf("cut at %v and at %v", cuts[0], cuts[i+1])
			}
		}
	}
}

// FuzzPieces: whatever a chunk holds, what its pieces are stands at the start of it, and it ends.
func FuzzPieces(f *testing.F) {
	f.Add(sized("a", 100), 16)
	f.Add([]byte{0x92, 0xc1}, 1)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		var z Inflater
		var p Pieces
		p.Begin(&z, &Chunk{Entries: b}, 1+most&0xffff)
		at := 0
		for range len(b) + 2 {
			piece, _, last, err := p.Next(nil)
			if err != nil {
				if !errors.Is(err, ErrMalformed) {
					t.Fatal(err)
				}
				return
			}
			if !bytes.HasPrefix(b[at:], piece) {
				t.Fatalf("%x at %d", piece, at)
			}
			if at += len(piece); last {
				if at != len(b) {
					t.Fatalf("it ends at %d of %d", at, len(b))
				}
				return
			}
		}
		t.Fatal("it does not end")
	})
}
