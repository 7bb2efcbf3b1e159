// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPieces: the pieces of a chunk are its entries, whole, in order, the same however they come,
// and only one that is larger than a piece makes a larger one.
func TestPieces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const most = 8 << 10
	for round := range 50 {
		var entries []byte
		events := 100 + r.IntN(100)
		for i := range events {
			n := r.IntN(300)
			if r.IntN(20) == 0 {
				n = r.IntN(5 * most)
			}
			if round == 0 && i == 0 { // so long that more than a piece is read with its end
				n = 5*most + 100
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

// TestLong: an entry that is longer than a piece is found where it stands, and reads as it is,
// however it came.
func TestLong(t *testing.T) {
	const most = 8 << 10
	small, big, huge := sized("s", 100), sized("b", 2*most), sized("h", 200<<10)
	entries := slices.Concat(small, big, small, small, huge, huge, small)
	for _, how := range []string{"", "gzip", "zstd"} {
		c := &Chunk{Tag: "t", Entries: entries, Events: 7}
		if how != "" {
			c = &Chunk{Tag: "t", Compressed: compressedBy(t, how, entries), Compression: how, Events: 7}
		}
		var z Inflater
		p := Pieces{MaxCopied: 100 << 10}
		p.Begin(&z, c, most)
		var all []byte
		longs, seen := 0, 0
		for last := false; !last; {
			var buf []byte
			var n int
			var err error
			if buf, n, last, err = p.Next(nil); err != nil {
				t.Fatal(err)
			}
			seen += n
			if p.Found == nil {
				all = append(all, buf...)
				continue
			}
			longs++
			l := p.Found
			if n != 1 || l.Sec == 0 || len(buf) > p.MaxCopied {
				t.Errorf("%s: %d entries, %d bytes, %+v", how, n, len(buf), l)
			}
			for _, open := range []func() (io.ReadCloser, error){l.Raw, l.Open, l.Raw} {
				r, err := open()
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(r)
				r.Close()
				if err != nil || int64(len(b)) > l.Size() || !bytes.HasSuffix(entries[:len(all)+int(l.Size())], b) {
					t.Fatalf("%s: %d bytes of %d, %v", how, len(b), l.Size(), err)
				}
			}
			packed, err := l.Packed()
			if err != nil {
				t.Fatal(err)
			}
			var again Inflater
			if err := again.Inflate(packed); err != nil || int64(len(packed.Entries)) != l.Size() ||
				packed.Events != 1 || packed.Tag != "t" {
				t.Errorf("%s: packed %+v, %v", how, packed.Tag, err)
			}
			all = append(all, packed.Entries...)
		}
		if !bytes.Equal(all, entries) || longs != 3 || seen != 7 {
			t.Errorf("%s: %d bytes of %d, %d long ones, %d entries", how, len(all), len(entries), longs, seen)
		}
	}
}

// FuzzPieces: whatever a chunk holds, what its pieces are stands at the start of it, and it ends.
func FuzzPieces(f *testing.F) {
	f.Add(sized("a", 100), 16)
	f.Add([]byte{0x92, 0xc1}, 1)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		var z Inflater
		p := Pieces{MaxCopied: most >> 16 & 0xff}
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
			if l := p.Found; l != nil {
				r, err := l.Raw()
				if err != nil {
					t.Fatal(err)
				}
				if piece, err = io.ReadAll(r); err != nil || int64(len(piece)) != l.Size() {
					t.Fatalf("%d bytes of %d, %v", len(piece), l.Size(), err)
				}
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
