// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// A Server hands a compressed chunk on with the bytes that came, which another end reads back to
// the same entries.
func TestCompressedAsItCame(t *testing.T) {
	e1, e2 := unhex(hexEntry1), unhex(hexEntry2)
	two := append(bytes.Clone(e1), e2...)
	var z Inflater
	for name, tc := range map[string]struct {
		how    string
		packed []byte
	}{
		"gzip":              {"gzip", gzipOf(two)},
		"gzip, two members": {"gzip", gzipOf(e1, e2)},
		"zstd":              {"zstd", zstdOf(two)},
		"zstd, two frames":  {"zstd", zstdOf(e1, e2)},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			play(func(s *Server) {
				g := s.Handler.(grouped)
				g.fail = func(c *Chunk) error {
					n++
					if !bytes.Equal(c.Compressed, tc.packed) || c.Compression != tc.how ||
						!bytes.Equal(c.Body(), tc.packed) || !bytes.Equal(c.Entries, two) {
						t.Errorf("%q %x of %x", c.Compression, c.Compressed, c.Entries)
					}
					got, err := ParseChunk(c.AppendTail(append(c.AppendHead(nil), c.Body()...)))
					if err != nil || got.Entries != nil || got.Events != 2 {
						t.Fatalf("%+v, %v", got, err)
					}
					if err := z.Inflate(got); err != nil || !bytes.Equal(got.Entries, two) {
						t.Errorf("%x, %v", got.Entries, err)
					}
					return nil
				}
			}, unhex(compressed(tc.how, tc.packed)))
			if n != 1 {
				t.Errorf("%d chunks", n)
			}
		})
	}
}

// Where entries were left out or changed, what came compressed is not what is to be stored.
func TestCompressedAndChanged(t *testing.T) {
	for name, e := range map[string]string{
		"time 0": "92 00 80", "nil record": hexEntry1 + "92 05 c0",
		"invalid": hexEntry1 + "92 05 05",
	} {
		t.Run(name, func(t *testing.T) {
			play(func(s *Server) {
				g := s.Handler.(grouped)
				g.fail = func(c *Chunk) error {
					if c.Compressed != nil || c.Compression != "" {
						t.Errorf("%q %x", c.Compression, c.Compressed)
					}
					return nil
				}
			}, unhex(compressed("gzip", gzipOf(unhex(e)))))
		})
	}
}

func TestInflateErrors(t *testing.T) {
	var z Inflater
	whole := gzipOf(entries(1000))
	for _, bad := range [][]byte{whole[:len(whole)-9], append(bytes.Clone(whole), 'x'), []byte("nothing of the kind")} {
		c := Chunk{Compressed: bad, Compression: "gzip"}
		if err := z.Inflate(&c); !errors.Is(err, ErrMalformed) || c.Entries != nil {
			t.Errorf("%v, %d bytes", err, len(c.Entries))
		}
	}
	c := Chunk{Compressed: whole, Compression: "gzip"}
	if err := z.Inflate(&c); err != nil || !bytes.Equal(c.Entries, entries(1000)) {
		t.Errorf("after errors: %v", err)
	}
}

// What says how long it will be takes no more than that. A claim that is wrong does no harm.
func TestInflateClaims(t *testing.T) {
	raw := make([]byte, 5<<20)
	c := Chunk{Compressed: gzipOf(raw), Compression: "gzip"}
	var z Inflater
	if err := z.Inflate(&c); err != nil || len(c.Entries) != len(raw) || cap(z.buf) > len(raw)+1 {
		t.Errorf("%d bytes in a buffer of %d: %v", len(c.Entries), cap(z.buf), err)
	}
	two := append(gzipOf(raw), gzipOf(raw[:200_000])...) // the claim is that of the last member
	c = Chunk{Compressed: two, Compression: "gzip"}
	if err := z.Inflate(&c); err != nil || len(c.Entries) != len(raw)+200_000 {
		t.Errorf("%d bytes: %v", len(c.Entries), err)
	}
	lie := gzipOf(raw[:200_000])
	for i := range 4 {
		lie[len(lie)-1-i] = 0xff
	}
	c = Chunk{Compressed: lie, Compression: "gzip"}
	if err := z.Inflate(&c); !errors.Is(err, ErrMalformed) || cap(z.buf) > 512<<10 {
		t.Errorf("a buffer of %d: %v", cap(z.buf), err)
	}
}

// As much as a Server takes can be read back.
func TestInflateLimit(t *testing.T) {
	var z Inflater
	for _, n := range []int{1000, budget.Base - 1, budget.Base, budget.Base + 1, 300_000} {
		raw := make([]byte, n)
		for _, how := range []string{"gzip", "zstd"} {
			packed := gzipOf(raw)
			if how == "zstd" {
				packed = zstdOf(raw)
			}
			c := Chunk{Compressed: packed, Compression: how}
			if err := z.inflate(&c, n); err != nil || len(c.Entries) != n {
				t.Errorf("%s, %d of %d bytes: %v", how, len(c.Entries), n, err)
			}
			c = Chunk{Compressed: packed, Compression: how}
			if err := z.inflate(&c, n-1); !errors.Is(err, ErrMalformed) || c.Entries != nil {
				t.Errorf("%s, %d bytes where %d are too many: %v", how, len(c.Entries), n, err)
			}
		}
	}
}

// A Client sends on what is compressed already, and makes it anew where another compression is
// asked for.
func TestClientSendsCompressedOn(t *testing.T) {
	e := entries(50)
	packed := gzipOf(e)
	for _, tc := range []struct {
		chunk    Chunk
		compress string
		want     []byte // nil: another stream of the same entries
	}{
		{Chunk{Compressed: packed, Compression: "gzip"}, "", packed},
		{Chunk{Compressed: packed, Compression: "gzip", Entries: e}, "gzip", packed},
		{Chunk{Compressed: packed, Compression: "gzip", Entries: e}, "zstd", nil},
		{Chunk{Compressed: packed, Compression: "gzip", Entries: e}, "", e},
	} {
		k := &Call{deflater: &wire.Deflater{How: tc.compress}, chunk: tc.chunk}
		if err := k.prepare(); err != nil {
			t.Fatal(err)
		}
		if tc.want != nil && !bytes.Equal(k.entries, tc.want) {
			t.Errorf("%q: %x", tc.compress, k.entries)
		}
		got, err := ParseChunk(bytes.Join([][]byte{k.head, k.entries, k.tail}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := new(Inflater).Inflate(got); err != nil || !bytes.Equal(got.Entries, e) {
			t.Errorf("%q: %v", tc.compress, err)
		}
	}
}

func FuzzInflate(f *testing.F) {
	f.Add(gzipOf(unhex(hexEntry1)), true)
	f.Add(zstdOf(unhex(hexEntry1)), false)
	f.Fuzz(func(t *testing.T, b []byte, gz bool) {
		if len(b) > 4096 { // a bomb takes memory and time, and finds nothing
			return
		}
		c := Chunk{Compressed: b, Compression: "zstd"}
		if gz {
			c.Compression = "gzip"
		}
		if err := new(Inflater).Inflate(&c); err != nil && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	})
}

// FuzzCompressed: what a Server hands on compressed, an Inflater reads back to the same entries,
// whatever it read before.
func FuzzCompressed(f *testing.F) {
	e := unhex(hexEntry1)
	gz, z := gzipOf(e), zstdOf(e)
	skippable := unhex("50 2a 4d 18 02 00 00 00 01 02")
	for _, b := range [][]byte{
		gz, append(bytes.Clone(gz), gz...), append(bytes.Clone(gz), 0), append(bytes.Clone(gz), make([]byte, 600)...),
		append(bytes.Clone(gz), 'x'), append(gzipOf(nil), gz...),
		append(bytes.Clone(gz), gzipOf(nil)...), gz[:len(gz)-1], gz[:len(gz)-8],
	} {
		f.Add(b, true)
	}
	for _, b := range [][]byte{
		z, append(bytes.Clone(z), z...), append(bytes.Clone(skippable), z...), append(bytes.Clone(z), skippable...),
		append(bytes.Clone(z), skippable[:9]...),
		append(bytes.Clone(z), 0), append(zstdOf(nil), z...), z[:len(z)-1],
		// A raw block; the same with a dictionary.
		append(unhex("28 b5 2f fd 20 0f 79 00 00"), e...), append(unhex("28 b5 2f fd 21 01 0f 79 00 00"), e...),
		append(unhex("28 b5 2f fd 00 88 79 00 00"), e...), append(unhex("28 b5 2f fd 00 68 79 00 00"), e...), // windows
	} {
		f.Add(b, false)
	}
	var reused Inflater
	f.Fuzz(func(t *testing.T, b []byte, isGzip bool) {
		how := "zstd"
		if isGzip {
			how = "gzip"
		}
		if len(b) > 4096 {
			return
		}
		play(func(s *Server) {
			s.MaxDecompressed = 1 << 20
			s.Handler.(grouped).fail = func(c *Chunk) error {
				for _, z := range []*Inflater{&reused, new(Inflater)} {
					got := Chunk{Compressed: bytes.Clone(c.Compressed), Compression: c.Compression}
					if err := z.Inflate(&got); c.Compressed != nil &&
						(err != nil || !bytes.Equal(got.Entries, c.Entries)) {
						t.Errorf("%x, from %x: %v", got.Entries, c.Compressed, err)
					}
				}
				return nil
			}
		}, unhex(compressed(how, b)), unhex(compressed(how, b)))
		_ = reused.Inflate(&Chunk{Compressed: b, Compression: how}) // which leaves it as it may be left
	})
}
