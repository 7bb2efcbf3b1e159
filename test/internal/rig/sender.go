// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// A Sender sends chunks with acks from wire bytes of its own, several in flight, and resends on a
// new connection what was not acked: same order, same bytes. It stands for clients that are not
// ours: random ids, no key of Spillway's.
type Sender struct {
	Name       string        // with which the names of its events begin
	Addr       string        // host:port, or the path of a unix socket
	Tag        string        // of all its chunks
	Misbehaves bool          // see misbehavingConnection
	Pad        int           // the longest that a record has besides its name; 300 where it is 0
	Pace       time.Duration // a misbehaving one rests for up to that long between acks
	Rand       *rand.Rand    // draws sizes, modes and pauses
	Sent       []string      // names of all events ever sent
	unacked    []sending
	Broken     int // connections that ended early
}

// A sending is a chunk on its way.
type sending struct {
	id    string
	bytes []byte
}

// inFlight is how many chunks a sender has on their way at most.
const inFlight = 8

// Run sends until stop is closed, then waits until all is acked.
func (s *Sender) Run(ctx context.Context, stop <-chan struct{}) error {
	for {
		connection := s.connection
		if s.Misbehaves {
			connection = s.misbehavingConnection
		}
		err := connection(ctx, stop)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errNext) {
			s.Broken++
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %d chunks not acked: %w", s.Name, len(s.unacked), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// connection uses one connection until it ends; nil means that all is sent and acked.
func (s *Sender) connection(ctx context.Context, stop <-chan struct{}) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	acks := bufio.NewReader(conn)
	write := func(c sending) error {
		_, err := conn.Write(c.bytes)
		return err
	}
	for _, c := range s.unacked {
		if err := write(c); err != nil {
			return err
		}
	}
	for {
		stopped, err := s.fill(stop, write)
		if err != nil || stopped && len(s.unacked) == 0 {
			return err
		}
		if err := s.ack(nil, acks); err != nil {
			return err
		}
	}
}

// fill writes new chunks, until as many as it likes are on their way. stopped: stop is closed, and
// there are none.
func (s *Sender) fill(stop <-chan struct{}, write func(sending) error) (stopped bool, err error) {
	select {
	case <-stop:
		return true, nil
	default:
	}
	for want := 1 + s.Rand.IntN(inFlight); len(s.unacked) < want; {
		c := s.chunk()
		s.unacked = append(s.unacked, c)
		if err := write(c); err != nil {
			return false, err
		}
	}
	return false, nil
}

// ack reads the next ack; from a conn that is not nil only for so long.
func (s *Sender) ack(conn net.Conn, acks *bufio.Reader) error {
	if conn != nil {
		if err := conn.SetReadDeadline(time.Now().Add(AckPatience)); err != nil {
			return err
		}
	}
	id, err := ReadAck(acks)
	if err != nil {
		return err
	}
	if id != s.unacked[0].id {
		return fmt.Errorf("ack of %q, want %q", id, s.unacked[0].id)
	}
	s.unacked = s.unacked[1:]
	return nil
}

func (s *Sender) network() string {
	if strings.Contains(s.Addr, "/") {
		return "unix"
	}
	return "tcp"
}

// chunk is a new chunk in one of the three modes.
func (s *Sender) chunk() sending {
	events := make([]Event, 1+s.Rand.IntN(20))
	for i := range events {
		events[i] = Named(fmt.Sprintf("%s-%d", s.Name, len(s.Sent)))
		events[i].Pad = strings.Repeat("p", s.Rand.IntN(cmp.Or(s.Pad, 300)))
		s.Sent = append(s.Sent, events[i].Name)
		if s.Rand.IntN(10) == 0 && i == 0 {
			id := NewID()
			return sending{id, messageMode(s.Tag, id, events[0])}
		}
	}
	id := NewID()
	if s.Rand.IntN(3) == 0 {
		return sending{id, ForwardMode(s.Tag, id, events...)}
	}
	return sending{id, Packed(s.Tag, id, AppendEntries(nil, events...))}
}

// A Lane is a connection on which a test sends chunk by chunk.
type Lane struct {
	T    testing.TB
	Conn net.Conn      // for what the test sends
	Acks *bufio.Reader // of Conn
}

// Lane is a connection to the collector.
func (c *Collector) Lane() *Lane { return c.LaneFrom("127.0.0.1") }

// LaneFrom is a connection from an address of the loopback range.
func (c *Collector) LaneFrom(source string) *Lane {
	conn := c.DialFrom(source)
	return &Lane{T: c.T, Conn: conn, Acks: bufio.NewReader(conn)}
}

// Write sends bytes.
func (l *Lane) Write(b []byte) {
	l.T.Helper()
	if _, err := l.Conn.Write(b); err != nil {
		l.T.Fatal(err)
	}
}

// Send sends a message and waits for its ack.
func (l *Lane) Send(message []byte, id string) {
	l.T.Helper()
	l.Write(message)
	l.WantAck(id)
}

// Patience bounds a wait for a peer: far longer than anything takes.
const Patience = 4 * time.Minute

// WantAck waits for the ack of an id.
func (l *Lane) WantAck(id string) {
	l.T.Helper()
	l.Deadline(Patience)
	got, err := ReadAck(l.Acks)
	if err != nil || got != id {
		l.T.Fatalf("ack %q, %v; want %q", got, err, id)
	}
}

// Deadline bounds the next reads.
func (l *Lane) Deadline(d time.Duration) {
	l.T.Helper()
	if err := l.Conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		l.T.Fatal(err)
	}
}

// WantClosed waits until the collector closes the connection, which must not send anything before.
func (l *Lane) WantClosed() {
	l.T.Helper()
	l.Deadline(Patience)
	b, err := l.Acks.ReadByte()
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		l.T.Errorf("the connection is not closed: read %#x, %v", b, err)
	}
}

// WantAckOf wants the ack of an id that was bin.
func (l *Lane) WantAckOf(id []byte) {
	l.T.Helper()
	l.Deadline(Patience)
	want := append(append(AppendStr([]byte{0x81}, "ack"), 0xc4, byte(len(id))), id...)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(l.Acks, got); err != nil || !bytes.Equal(got, want) {
		l.T.Fatalf("ack %q, %v; want %q", got, err, want)
	}
}
