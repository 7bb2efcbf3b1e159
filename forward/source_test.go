// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// What an endpoint adds is added in every mode, at the end, and in place of what the peer put
// there; what came is in Raw.
func TestSource(t *testing.T) {
	const (
		meta  = "92 92 " + hexTime + "81 a1 6b 01"
		forge = "83 a1 61 01 a2 6970 a1 78 c4 02 6970 a1 79" // {"a":1,"ip":"x",bin "ip":"y"}
		added = `{"a":1,"ip":"192.0.2.7","host":"web.example"}`
	)
	entry := "92 " + hexTime + forge
	for name, in := range map[string][]byte{
		"message":          unhex("93 a1 74 " + hexTime + forge),
		"message ack":      unhex("94 a1 74 " + hexTime + forge + "81" + hexChunk),
		"message metadata": unhex("93 a1 74 92 " + hexTime + "81 a1 6b 01" + forge),
		"message timeless": unhex("93 a1 74 00 " + forge),
		"forward":          unhex("93 a1 74 92 " + entry + meta + forge + "81" + hexChunk),
		"packed":           unhex(compressed("", unhex(entry+meta+forge+"92 00 c0"))),
		"gzip":             unhex(compressed("gzip", gzipOf(unhex(entry)))),
		"zstd":             unhex(compressed("zstd", zstdOf(unhex(entry), unhex(entry)))),
		"json":             []byte(`["t", 1441588984, {"a":1,"ip":"x","ip":"y"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			set := func(s *Server) {
				s.Endpoint = Endpoint{
					TagPrefix: "from", AddressKey: "ip", HostKey: "host", SubjectKey: "subject",
					UserKey: "user",
				}
				s.hosts.look = func(_ context.Context, addr string) ([]string, error) {
					if addr != "192.0.2.7" {
						t.Errorf("lookup of %s", addr)
					}
					return []string{"web.example."}, nil
				}
			}
			o := play(set, in)
			if len(o.events) == 0 || o.kinds() != "" {
				t.Fatalf("%q, %s", o.events, o.kinds())
			}
			for _, e := range o.events {
				if !strings.HasPrefix(e, "from.t ") || !strings.HasSuffix(e, added) {
					t.Errorf("%s", e)
				}
			}
			if plain := play(nil, in); len(plain.events) != len(o.events) || string(plain.acks) != string(o.acks) {
				t.Errorf("%d events and acks %x, without a source %d and %x", len(o.events), o.acks, len(plain.events),
					plain.acks)
			}
			same(t, play(set, bytewise(in)...), o)
		})
	}
}

func TestSourceRaw(t *testing.T) {
	var raw, compressed []byte
	check := func(c *Chunk) error {
		raw, compressed = slices.Clone(sentOf(c).Entries), c.Compressed
		return nil
	}
	for _, how := range []string{"", "gzip"} {
		play(func(s *Server) {
			s.Endpoint.AddressKey = "ip"
			s.Handler = HandlerFunc(func(_ context.Context, c *Chunk) error { return check(c) })
		}, packedMessage("t", 10, how))
		if string(raw) != string(entries(10)) || compressed != nil {
			t.Errorf("%q: Raw is not what came, or Compressed %x is not nil", how, compressed)
		}
	}
}

func TestSourceHost(t *testing.T) {
	looked := 0
	h := hosts{look: func(context.Context, string) ([]string, error) {
		looked++
		return nil,
			errors.New("no such host")
	}}
	addr := (&script{}).RemoteAddr()
	for range 3 {
		if name := h.of(context.Background(), addr, "192.0.2.7"); name != "192.0.2.7" || looked != 1 {
			t.Errorf("%q after %d lookups", name, looked)
		}
	}
	if name := h.of(context.Background(), nil, "unix"); name != "unix" || looked != 1 {
		t.Errorf("%q after %d lookups", name, looked)
	}
}

func TestForcedTag(t *testing.T) {
	in := append(unhex(hexForward), unhex("93 a1 75 "+hexTime+" 80")...)
	for _, tc := range []struct{ tag, prefix, want string }{
		{"all", "", "all all all"},
		{"", "p", "p.t p.t p.u"},
		{"all", "p.q", "p.q.all p.q.all p.q.all"},
	} {
		o := play(func(s *Server) { s.Endpoint.Tag, s.Endpoint.TagPrefix = tc.tag, tc.prefix }, in)
		var got []string
		for _, e := range o.events {
			tag, _, _ := strings.Cut(e, " ")
			got = append(got, tag)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
	o := play(func(s *Server) { s.Endpoint.TagPrefix = strings.Repeat("p", MaxTag-1) }, in)
	if len(o.events) != 0 || len(o.acks) != 0 || o.stats.Refused != 2 || o.stats.PeerErrors[PeerBadTag] != 2 {
		t.Errorf("%d events, %d refused, %s", len(o.events), o.stats.Refused, o.kinds())
	}
}

// A chunk knows the tag that its sender gave, where the endpoint made another one of it.
func TestSentTag(t *testing.T) {
	for name, in := range map[string]string{
		"packed": hexPacked, "forward": hexForward,
		"message": "94 a1 74 05 80 81" + hexChunk, "timeless": "94 a1 74 00 80 81" + hexChunk,
	} {
		for _, tc := range []struct {
			ep        Endpoint
			tag, sent string
		}{
			{Endpoint{}, "t", ""},
			{Endpoint{Tag: "x"}, "x", "t"},
			{Endpoint{TagPrefix: "p"}, "p.t", "t"},
			{Endpoint{Tag: "x", TagPrefix: "p"}, "p.x", "t"},
		} {
			n := 0
			play(func(s *Server) {
				s.Endpoint = tc.ep
				g := s.Handler.(grouped)
				g.fail = func(c *Chunk) error {
					if n++; c.Tag != tc.tag || sentOf(c).Tag != tc.sent {
						t.Errorf("%s: %q, sent as %q, want %q and %q", name, c.Tag, sentOf(c).Tag, tc.tag, tc.sent)
					}
					return nil
				}
			}, unhex(in))
			if n != 1 {
				t.Errorf("%s: %d chunks", name, n)
			}
		}
	}
}

// A chunk of tiny records does not become huge.
func TestSourceBounded(t *testing.T) {
	in := packedMessage("t", 3000, "")
	o := play(func(s *Server) {
		s.Endpoint.AddressKey = strings.Repeat("k", 1000)
		s.MaxDecompressed = 2 << 20
	}, in)
	if len(o.events) != 0 || len(o.acks) != 0 || o.kinds() != "bomb: message refused" || o.stats.RefusedEvents != 3000 {
		t.Errorf("%d events, %s, %+v", len(o.events), o.kinds(), o.stats)
	}
}

// Nor does one of entries without a time, which all get one.
func TestTimelessBounded(t *testing.T) {
	for _, how := range []string{"", "gzip"} {
		n := 1 << 20 // of 3 bytes, to become 12
		in := wireOf(&Chunk{
			Tag: "t", ID: []byte("c"),
			Entries: append(bytes.Repeat(unhex("92 00 80"), n), unhex("92 00 c0")...),
		}, how)
		for _, most := range []int64{12 << 20, 12<<20 + 64} {
			o := play(func(s *Server) { s.MaxDecompressed = most }, in)
			refused := uint64(0)
			if most == 12<<20 {
				refused = uint64(n) + 1
			}
			if st := &o.stats; st.RefusedEvents != refused || st.Events+st.Skipped+st.RefusedEvents != uint64(n)+1 {
				t.Errorf("%q, %d: %s, %+v", how, most, o.kinds(), o.stats)
			}
		}
	}
}
