// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/spillwaylog/spillway/msgpack"
)

func TestChunkRoundTrip(t *testing.T) {
	for _, c := range []Chunk{
		{Tag: "t", Entries: unhex(hexEntry1), Events: 1},
		{Tag: "", ID: []byte{}, Entries: nil},
		{Tag: "a.b", ID: []byte("id\n"), Entries: entries(1000), Events: 1000, UniqueID: true, Signal: 2},
		{Tag: "\xff\x00", ID: []byte{0, 255}, IDBin: true},
	} {
		got, err := ParseChunk(c.AppendTail(append(c.AppendHead(nil), c.Entries...)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Tag != c.Tag || !bytes.Equal(got.ID, c.ID) || (got.ID == nil) != (c.ID == nil) || got.IDBin != c.IDBin ||
			!bytes.Equal(got.Entries, c.Entries) ||
			got.Events != c.Events || got.UniqueID != c.UniqueID || got.Signal != c.Signal || got.Sent != nil {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
}

func TestChunkParseErrors(t *testing.T) {
	whole := unhex(hexPacked)
	for n := range whole {
		if _, err := ParseChunk(whole[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, s := range []string{"05", "91 a1 74", hexForward, hexPacked + "00", compressed("lzma", nil)} {
		if _, err := ParseChunk(unhex(s)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestChunkParseAllocations(t *testing.T) {
	c := Chunk{Tag: "app.web", ID: NewID(), Entries: entries(10), Events: 10}
	b := c.AppendTail(append(c.AppendHead(nil), c.Entries...))
	var out Chunk
	buf := make([]byte, 0, 200)
	if n := testing.AllocsPerRun(100, func() {
		if err := out.Parse(b); err != nil {
			t.Error(err)
		}
		buf = out.AppendTail(out.AppendHead(buf[:0]))
		r := ReadEntries(out.Entries)
		n := 0
		for _, ok := r.Next(); ok; _, ok = r.Next() {
			n++
		}
		if n != 10 {
			t.Error(n)
		}
	}); n != 0 && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
}

// Raw is what came, wherever the entries were rewritten, and nil where they were not.
func TestChunkRaw(t *testing.T) {
	dirty := unhex("92 00 80 c0 92 05 05" + hexEntry1)
	gathered := "93 a1 74 00 80 93 a1 74 05 80"
	for name, tc := range map[string]struct {
		in   []byte
		want []byte
	}{
		"clean":         {unhex(hexPacked), nil},
		"clean message": {withID('a'), nil},
		"gathered":      {unhex(gathered), nil},
		"packed":        {wireOf(&Chunk{Tag: "t", ID: []byte("x"), Entries: dirty}, ""), dirty},
		"gzip":          {wireOf(&Chunk{Tag: "t", ID: []byte("x"), Entries: dirty}, "gzip"), dirty},
		"zstd":          {wireOf(&Chunk{Tag: "t", ID: []byte("x"), Entries: dirty}, "zstd"), dirty},
		"forward":       {slices.Concat(unhex("93 a1 74 94"), dirty, unhex("81"+hexChunk)), dirty},
		"message":       {unhex("94 a1 74 00 81 a1 6d a1 62 81" + hexChunk), unhex("92 00 81 a1 6d a1 62")},
		"metadata":      {unhex("94 a1 74 92 00 80 81 a1 6d a1 62 81" + hexChunk), unhex("92 92 00 80 81 a1 6d a1 62")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pieces := range [][][]byte{{tc.in}, bytewise(tc.in)} {
				play(func(s *Server) {
					g := s.Handler.(grouped)
					g.fail = func(c *Chunk) error {
						if sent := sentOf(c).Entries; !bytes.Equal(sent, tc.want) || (sent == nil) != (tc.want == nil) {
							t.Errorf("sent %x, want %x", sent, tc.want)
						}
						return nil
					}
				}, pieces...)
			}
		})
	}
}

// What stands in an option under a key that is the storing side's own is passed over.
func TestForeignKey(t *testing.T) {
	c := Chunk{Tag: "t", ID: []byte("x"), Entries: unhex(hexEntry1), Events: 1, UniqueID: true}
	tail := msgpack.AppendBin(msgpack.AppendString(c.AppendTail(nil), "print"), []byte("forged"))
	tail[0]++
	play(func(s *Server) {
		g := s.Handler.(grouped)
		g.fail = func(got *Chunk) error {
			if !got.UniqueID || string(got.ID) != "x" || got.Events != 1 {
				t.Errorf("%+v", got)
			}
			return nil
		}
	}, slices.Concat(c.AppendHead(nil), c.Entries, tail))
}

func TestEntryReader(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want string
		meta bool
	}{
		{hexEntry1, event + `{"m":"1"}`, false},
		{"92 92 05 80 80", `5.000000000 {} {}`, true},
		{"92 ff 80", `-1.000000000 {}`, false},
		{"92 cb bfe0000000000000 80", `-1.500000000 {}`, false},
		{"92 cb 41d5a9c9bfffffff 80", `1453795071.999999762 {}`, false},
		{"92 cf 7fffffffffffffff 80", `9223372036854775807.000000000 {}`, false},
	} {
		r := ReadEntries(unhex(tc.in))
		e, ok := r.Next()
		if !ok || describe(e) != tc.want || (e.Meta != nil) != tc.meta || !bytes.Equal(e.Raw, unhex(tc.in)) {
			t.Errorf("%s: %s, %v", tc.in, describe(e), r.Err())
		}
		if _, ok := r.Next(); ok || r.Err() != nil {
			t.Error(r.Err())
		}
	}
	for _, in := range []string{
		"92", "92 05", "93 05 80 80", "92 a1 78 80", "92 05 05", "92 05 c0",
		"92 cf ffffffffffffffff 80", "92 cb 7ff8000000000000 80", "92 05 81 a1", "c1", "92 92 05 05 80",
	} {
		r := ReadEntries(unhex(hexEntry1 + in))
		_, first := r.Next()
		_, second := r.Next()
		if !first || second || !errors.Is(r.Err(), ErrMalformed) {
			t.Errorf("%s: %v %v %v", in, first, second, r.Err())
		}
	}
}

func TestAppendExtJSON(t *testing.T) {
	for in, want := range map[string]string{
		"d7 00 55ece6f8 075bcd15": `"2015-09-07T01:23:04.123456789Z"`,
		"d7 00 55ece6f8 3b9aca00": `"ext:0:Vezm+DuaygA="`,
		"d7 01 55ece6f8 00000000": `"ext:1:Vezm+AAAAAA="`,
		"c7 00 00":                `"ext:0:"`,
	} {
		out, _, err := msgpack.AppendJSON(nil, unhex(in), AppendExtJSON)
		if err != nil || string(out) != want {
			t.Errorf("%s: %s %v", in, out, err)
		}
	}
}
