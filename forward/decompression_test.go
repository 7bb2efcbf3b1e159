// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// sized returns an entry with a text of n bytes.
func sized(name string, n int) []byte {
	b := AppendEventTime([]byte{wire.CodeArray2}, 1792375200, 0)
	b = append(b, wire.CodeMap0|2)
	b = msgpack.AppendString(b, "name")
	b = msgpack.AppendString(b, name)
	b = msgpack.AppendString(b, "pad")
	return msgpack.AppendString(b, strings.Repeat("\x01", n))
}

func compressedBy(t *testing.T, how string, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch how {
	case "":
		return b
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// largeStore is a handler that keeps what it gets.
type largeStore struct {
	mu     sync.Mutex
	names  []string
	large  []string
	events int
	raw    [][]byte
	later  bool
}

func (s *largeStore) ServeForward(_ context.Context, c *Chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events += c.Events
	s.later = s.later || c.Entries == nil
	var z Inflater
	if raw, err := io.ReadAll(z.Raw(c)); err == nil {
		s.raw = append(s.raw, raw)
	}
	own := *c
	if err := z.Inflate(&own); err != nil {
		return err
	}
	n := 0
	for _, record := range own.All() {
		n++
		s.names = append(s.names, nameOf(record))
	}
	if n != c.Events {
		return fmt.Errorf("%d events, and it says %d", n, c.Events)
	}
	return nil
}

func nameOf(record []byte) string {
	_, n, _ := msgpack.ReadToken(record)
	k, _ := msgpack.Skip(record[n:])
	b, _, _, _ := msgpack.ReadBytes(record[n+k:])
	return string(b)
}

func (s *largeStore) setAside(_ context.Context, e *LargeEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := ReadEntries(e.Entry)
	entry, ok := r.Next()
	name := ""
	if ok {
		name = nameOf(entry.Record)
	}
	s.large = append(s.large, fmt.Sprintf("%d %d %v %s", e.Index, e.Size, e.Whole(), name))
	return nil
}

// TestLargeEvents: what is larger than MaxEvent is set aside, as a whole or its head, however it
// comes, and all else of its chunk is handed on.
func TestLargeEvents(t *testing.T) {
	small := func(name string) []byte { return sized(name, 100) }
	large := sized("large", 5<<20)
	huge := sized("huge", maxAside)
	timeless := append([]byte{wire.CodeArray2, 0, wire.CodeMap0 | 1}, "\xa4name\xa8timeless"...)
	filler := bytes.Repeat(sized("f", 100_000), 200)
	fillers := strings.Repeat(" f", 200)
	said := func(i int, e []byte, whole bool, name string) string {
		return fmt.Sprintf("%d %d %v %s", i, len(e), whole, name)
	}
	for _, how := range []string{"", "gzip", "zstd"} {
		for _, v := range []struct {
			name    string
			entries [][]byte
			names   string
			large   []string
			later   bool
		}{
			{"small", [][]byte{small("a"), small("b")}, "a b", nil, false},
			{"one", [][]byte{large}, "", []string{said(0, large, true, "large")}, false},
			{
				"between",
				[][]byte{small("a"), large, small("b"), timeless},
				"a b timeless",
				[]string{said(0, large, true, "large")},
				false,
			},
			{
				"two",
				[][]byte{large, small("a"), large},
				"a",
				[]string{said(0, large, true, "large"), said(1, large, true, "large")},
				false,
			},
			{"later", [][]byte{small("a"), filler, small("b")}, "a" + fillers + " b", nil, true},
			{
				"later, one",
				[][]byte{small("a"), large, filler, small("b"), timeless, large, small("c")},
				"a" + fillers + " b timeless c",
				[]string{said(0, large, true, "large"), said(1, large, true, "large")},
				true,
			},
			{"huge", [][]byte{small("a"), huge, small("b")}, "a b", []string{said(0, huge, false, "")}, true},
		} {
			t.Run(how+" "+v.name, func(t *testing.T) {
				entries := bytes.Join(v.entries, nil)
				if len(entries) > DefaultMaxChunk && how != "gzip" {
					return
				}
				st := &largeStore{}
				s := &Server{Handler: st, MaxEvent: 4 << 20, SetAside: st.setAside}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- s.Serve(l) }()
				defer func() {
					_ = s.Close()
					<-served
				}()
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				c := &Chunk{Tag: "t", ID: []byte("id"), Events: 1}
				if body := compressedBy(t, how, entries); how == "" {
					c.Entries = body
				} else {
					c.Compressed, c.Compression = body, how
				}
				if _, err := conn.Write(c.AppendTail(append(c.AppendHead(nil), c.Body()...))); err != nil {
					t.Fatal(err)
				}
				_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
				ack := make([]byte, 8)
				if _, err := io.ReadFull(conn, ack); err != nil {
					t.Fatalf("no ack: %v; peerErrors %v", err, s.Stats().PeerErrors)
				}
				st.mu.Lock()
				defer st.mu.Unlock()
				if got := strings.Join(st.names, " "); got != v.names {
					t.Errorf("handed on %.200q, want %.200q", got, v.names)
				}
				if fmt.Sprint(st.large) != fmt.Sprint(v.large) {
					t.Errorf("set aside %q, want %q", st.large, v.large)
				}
				if how != "" && st.later != v.later && v.names != "" {
					t.Errorf("later: %v, want %v", st.later, v.later)
				}
				if v.names != "" && (len(st.raw) != 1 || !bytes.Equal(st.raw[0], entries)) {
					t.Error("the raw entries are not those that came")
				}
				if n := s.Stats().Large; n != uint64(len(v.large)) {
					t.Errorf("counted %d", n)
				}
			})
		}
	}
}
