// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"testing"
)

// A Server hands a compressed chunk on with the bytes that came, which another end reads back to the same entries.
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
					if !bytes.Equal(c.Compressed, tc.packed) || c.Compression != tc.how || !bytes.Equal(c.Body(), tc.packed) || !bytes.Equal(c.Entries, two) {
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
	for name, e := range map[string]string{"time 0": "92 00 80", "nil record": hexEntry1 + "92 05 c0", "invalid": hexEntry1 + "92 05 05"} {
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

// A Client sends on what is compressed already, and makes it anew where another compression is asked for.
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
		k := &Call{c: &Client{Compress: tc.compress}, chunk: tc.chunk}
		k.c.deflater.how = tc.compress
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
