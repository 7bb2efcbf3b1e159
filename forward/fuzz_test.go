// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// FuzzServerDecode: whatever comes, and however it is cut, the server ends, holds nothing, and
// gives the same events, acks and peerErrors.
func FuzzServerDecode(f *testing.F) {
	for _, s := range []string{
		hexForward, hexPacked, hexForward + hexPacked, "c0 05", "94 a1 74 05 81 a1 6d a1 62 81" + hexChunk,
		"93 a1 74 92 " + hexTime + "80 81 a1 6d a1 62",
		"92 a1 74 dd ffffffff", "dc ffff dc ffff dc ffff", compressed("gzip", gzipOf(unhex(hexEntry1))),
		compressed("zstd", zstdOf(unhex(hexEntry1))),
		"92 a1 74 93 92 05 80 c0 " + hexEntry1, "93 a1 74 05 c0", "93 05 05 80", "93 d9 ff", "91 c1",
		"93 a1 74 c4 02 92 c1 81" + hexChunk,
	} {
		f.Add(unhex(s), []byte{0})
		f.Add(unhex(s), []byte{2, 30, 0})
	}
	f.Add([]byte(`["t", 5, {"m":"b"}, {"chunk":"x"}]["t", [[1.5,{}]]]`), []byte{7})
	f.Fuzz(func(t *testing.T, b, how []byte) {
		small := func(s *Server) { s.MaxChunk, s.MaxDecompressed, s.Memory = 1<<16, 1<<18, 1<<16 }
		whole := play(small, b)
		pieces := play(small, vectors.Cut(b, how)...)
		if len(b) > 0 && (b[0] == '{' || b[0] == '[') {
			pieces.stats.Ignored, whole.stats.Ignored = 0, 0
		}
		same(t, pieces, whole)
		if whole.stats.Memory != 0 || pieces.stats.Memory != 0 {
			t.Errorf("memory left: %d %d", whole.stats.Memory, pieces.stats.Memory)
		}
		// With a source to add, and with a handler that finishes later, there are the same events
		// and acks.
		told := play(func(s *Server) {
			small(s)
			s.Endpoint.AddressKey = "ip"
		}, vectors.Cut(b, how)...)
		later := play(func(s *Server) {
			small(s)
			o := s.Handler.(grouped).outcome
			s.Handler = asyncFunc(func(ctx context.Context, c *Chunk, done func(error)) {
				go func() { done(o.ServeForward(ctx, c)) }()
			})
		}, vectors.Cut(b, how)...)
		for name, o := range map[string]*outcome{"source": told, "later": later} {
			if len(o.events) != len(whole.events) || !bytes.Equal(o.acks, whole.acks) || o.kinds() != whole.kinds() {
				t.Errorf("%s: %d events, acks %x, %s; want %d, %x, %s", name, len(o.events), o.acks, o.kinds(),
					len(whole.events), whole.acks, whole.kinds())
			}
			if o.stats.Memory != 0 {
				t.Errorf("%s: memory left: %d", name, o.stats.Memory)
			}
		}
		for _, tr := range whole.peerErrors {
			if tr.Kind == PeerUnstored {
				t.Errorf("a chunk that cannot be read: %v", tr)
			}
			if s := tr.Error(); s == "" || bytes.ContainsAny([]byte(s), "\n\r") {
				t.Errorf("%q", s)
			}
		}
	})
}

// FuzzEntries: what the check lets through, rewritten if need be, reads back as so many entries
// that are good as they are.
func FuzzEntries(f *testing.F) {
	for _, s := range []string{
		hexEntry1 + hexEntry2, "92 00 80", "92 92 00 80 80", "92 05 c0 c0",
		"92 05 05 91 92 05 80", "92 ca 00000000 80", "92 d7 01 0000000000000000 80",
	} {
		f.Add(unhex(s))
	}
	now := time.Unix(946684800, 5)
	f.Fuzz(func(t *testing.T, b []byte) {
		r := ReadEntries(b) // must not panic
		for e, ok := r.Next(); ok; e, ok = r.Next() {
			if len(e.Raw) == 0 || len(e.Record) == 0 {
				t.Fatalf("%+v", e)
			}
		}
		var ck wire.Check
		var scan msgpack.Scanner
		if err := ck.Run(b, wire.NoLimit, &scan, int64(len(b))); err != nil || ck.Pos != int64(len(b)) {
			return
		}
		out := b
		if !ck.Clean() {
			out = ck.Rewrite(nil, b, now, nil)
		}
		if n := int64(len(b)) + 9*ck.Zeros; int64(len(out)) > n {
			t.Fatalf("%d bytes became %d, at most %d were expected", len(b), len(out), n)
		}
		var again wire.Check
		scan = msgpack.Scanner{}
		if err := again.Run(out, wire.NoLimit, &scan, int64(len(out))); err != nil || !again.Clean() ||
			again.Events != ck.Events {
			t.Fatalf("rewritten: %+v %v, was %+v", again, err, ck)
		}
		n := int64(0)
		r = ReadEntries(out)
		for _, ok := r.Next(); ok; _, ok = r.Next() {
			n++
		}
		if r.Err() != nil || n != ck.Events {
			t.Fatalf("%d entries, want %d: %v", n, ck.Events, r.Err())
		}
		src := new(wire.Stamp)
		src.Add("m", "our")
		src.Add("lost", "")
		told := ck.Rewrite(nil, b, now, src)
		if most := int64(len(b)) + 9*ck.Zeros + ck.Events*int64(src.MaxBytes()); int64(len(told)) > most {
			t.Fatalf("%d bytes became %d with their source, at most %d were expected", len(b), len(told), most)
		}
		r = ReadEntries(told)
		for e, ok := r.Next(); ok; e, ok = r.Next() {
			n--
			v, ok := Record(e.Record).Get("m")
			if text, is := v.Text(); !ok || !is || string(text) != "our" ||
				bytes.Count(e.Record, unhex("a1 6d a3 6f7572")) < 1 {
				t.Fatalf("%x: key m is %x", e.Record, v)
			}
			if _, ok := Record(e.Record).Get("lost"); ok {
				t.Fatalf("%x has the key lost", e.Record)
			}
		}
		if r.Err() != nil || n != 0 {
			t.Fatalf("%d entries are missing: %v", n, r.Err())
		}
	})
}

// FuzzParseChunk: no panic, and what is parsed writes itself the same.
func FuzzParseChunk(f *testing.F) {
	f.Add(unhex(hexPacked))
	f.Add(unhex("92 a1 74 a0"))
	f.Add(unhex(compressed("gzip", gzipOf(unhex(hexEntry1)))))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseChunk(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Error(err)
			}
			return
		}
		again, err := ParseChunk(c.AppendTail(append(c.AppendHead(nil), c.Body()...)))
		if err != nil || again.Tag != c.Tag || !bytes.Equal(again.ID, c.ID) || !bytes.Equal(again.Entries, c.Entries) ||
			again.UniqueID != c.UniqueID ||
			!bytes.Equal(again.Compressed, c.Compressed) || again.Compression != c.Compression ||
			(again.ID == nil) != (c.ID == nil) || again.IDBin != c.IDBin || again.Events != c.Events {
			t.Errorf("%+v, then %+v: %v", c, again, err)
		}
	})
}
