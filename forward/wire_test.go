// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/msgpack"
)

// The vectors of docs/forward.md, and what the tests of a connection share: a script in place of a
// socket, and a handler that writes down.

const (
	hexTime    = vectors.Time
	hexEntry1  = vectors.Entry1
	hexEntry2  = vectors.Entry2
	hexID      = vectors.ID
	hexChunk   = vectors.Chunk
	hexAck     = vectors.Ack
	hexForward = "93 a1 74 92 " + hexEntry1 + hexEntry2 + "81" + hexChunk
	hexPacked  = vectors.Packed
	event      = "1441588984.123456789 "
)

func unhex(s string) []byte { return vectors.Unhex(s) }

// script is a connection whose peer sends pieces, one a Read, and then closes.
type script struct {
	net.Conn
	pieces vectors.Pieces
	out    bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.pieces.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711} }

// outcome is what became of a script.
type outcome struct {
	mu         sync.Mutex
	events     []string // tag, time, metadata, record
	chunks     []string // id, events, invalid, skipped
	peerErrors []PeerError
	acks       []byte
	left       int // bytes that the server did not read
	stats      ServerStats
	fail       func(*Chunk) error
}

func (o *outcome) ServeForward(_ context.Context, c *Chunk) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.note(c)
}

func (o *outcome) note(c *Chunk) error {
	if o.fail != nil {
		if err := o.fail(c); err != nil {
			return err
		}
	}
	id := "-"
	if c.ID != nil {
		id = fmt.Sprintf("%q", c.ID)
	}
	o.chunks = append(o.chunks, fmt.Sprintf("%s %s events %d invalid %d skipped %d", c.Tag, id, c.Events,
		sentOf(c).Invalid, sentOf(c).Skipped))
	r := ReadEntries(c.Entries)
	n := 0
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		n++
		o.events = append(o.events, c.Tag+" "+describe(e))
	}
	if r.Err() != nil || n != c.Events {
		return fmt.Errorf("chunk of %d entries: %d read: %w: %x", c.Events, n, r.Err(), c.Entries)
	}
	return nil
}

// sentOf is how a chunk was sent; blank where it is as it came.
func sentOf(c *Chunk) Sent {
	if c.Sent == nil {
		return Sent{}
	}
	return *c.Sent
}

// describe is an entry as text.
func describe(e Entry) string {
	text := fmt.Sprintf("%d.%09d ", e.Sec, e.Nsec)
	if e.Meta != nil {
		text += string(toJSON(e.Meta)) + " "
	}
	return text + string(toJSON(e.Record))
}

func toJSON(b []byte) []byte {
	out, _, err := msgpack.AppendJSON(nil, b, AppendExtJSON)
	if err != nil {
		return fmt.Appendf(nil, "%v: %x", err, b)
	}
	return out
}

// grouped is an outcome that takes groups.
type grouped struct{ *outcome }

func (g grouped) ServeGroup(_ context.Context, chunks []*Chunk) (func(context.Context) error, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range chunks {
		if err := g.note(c); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// play lets a server read pieces of one connection, on the calling goroutine.
func play(set func(*Server), pieces ...[]byte) *outcome {
	o := new(outcome)
	s := &Server{Handler: grouped{o}, PeerError: func(t PeerError) { o.peerErrors = append(o.peerErrors, t) }}
	if set != nil {
		set(s)
	}
	s.now = func() time.Time { return time.Unix(946684800, 0) } // the year 2000 begins
	sc := &script{}
	for _, p := range pieces {
		sc.pieces = append(sc.pieces, slices.Clone(p))
	}
	s.init()
	s.serve(s.admit(sc, &s.Endpoint, nil))
	_ = s.Close() // ends the watch too
	o.acks = sc.out.Bytes()
	for _, p := range sc.pieces {
		o.left += len(p)
	}
	o.stats = s.Stats()
	return o
}

// bytewise splits b into single bytes.
func bytewise(b []byte) [][]byte {
	var pieces [][]byte
	for i := range b {
		pieces = append(pieces, b[i:i+1])
	}
	return pieces
}

// kinds lists kind and fate of the peerErrors.
func (o *outcome) kinds() string {
	var out []string
	for _, t := range o.peerErrors {
		out = append(out, fmt.Sprintf("%v: %v", t.Kind, t.Action))
	}
	return strings.Join(out, "; ")
}

// byTag lists the events in an order that does not depend on how those of several tags were
// gathered.
func (o *outcome) byTag() []string {
	out := slices.Clone(o.events)
	slices.SortStableFunc(out, func(a, b string) int {
		ta, _, _ := strings.Cut(a, " ")
		tb, _, _ := strings.Cut(b, " ")
		return strings.Compare(ta, tb)
	})
	return out
}

// vector is one case: bytes in, and what is to come of them.
type vector struct {
	name       string
	in         string // hexadecimal
	events     []string
	acks       string // hexadecimal
	peerErrors string
	set        func(*Server)
}

// run runs cases: in one piece, byte by byte, and with a handler that takes no groups.
func run(t *testing.T, cases []vector) {
	t.Helper()
	for _, w := range cases {
		for _, how := range []string{"whole", "bytes", "single"} {
			t.Run(w.name+"/"+how, func(t *testing.T) {
				in := unhex(w.in)
				pieces := [][]byte{in}
				if how == "bytes" {
					pieces = bytewise(in)
				}
				var single *outcome
				o := play(func(s *Server) {
					if w.set != nil {
						w.set(s)
					}
					if how == "single" {
						single = s.Handler.(grouped).outcome
						s.Handler = single
					}
				}, pieces...)
				w.check(t, o)
			})
		}
	}
}

func (w *vector) check(t *testing.T, o *outcome) {
	t.Helper()
	if !slices.Equal(o.byTag(), w.events) {
		t.Errorf("events\n%q, want\n%q", o.events, w.events)
	}
	if !bytes.Equal(o.acks, unhex(w.acks)) {
		t.Errorf("acks % x, want %s", o.acks, w.acks)
	}
	if o.kinds() != w.peerErrors {
		t.Errorf("peerErrors %q, want %q: %v", o.kinds(), w.peerErrors, o.peerErrors)
	}
	if o.stats.Memory != 0 || o.stats.Connections != 0 {
		t.Errorf("left behind: %+v", o.stats)
	}
	if closed := strings.Contains(w.peerErrors, "closed") && !strings.Contains(w.peerErrors, "partial"); !closed &&
		o.left > 0 {
		t.Errorf("%d bytes not read", o.left)
	}
}
