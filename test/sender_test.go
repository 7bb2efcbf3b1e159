// SPDX-License-Identifier: Apache-2.0

package test

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

// A sender sends chunks with acks from wire bytes of its own, several in flight, and resends on a
// new connection what was not acked: same order, same bytes. It stands for clients that are not
// ours: random ids, no key of Spillway's.
type sender struct {
	name    string
	addr    string // host:port, or the path of a unix socket
	tag     string
	wild    bool          // see wildConnection
	pad     int           // the longest that a record has besides its name; 300 where it is 0
	pace    time.Duration // a wild one rests for up to that long between acks
	rand    *rand.Rand
	sent    []string // names of all events ever sent
	unacked []sending
	broken  int // connections that ended early
}

// A sending is a chunk on its way.
type sending struct {
	id    string
	bytes []byte
}

// inFlight is how many chunks a sender has on their way at most.
const inFlight = 8

// run sends until stop is closed, then waits until all is acked.
func (s *sender) run(ctx context.Context, stop <-chan struct{}) error {
	for {
		connection := s.connection
		if s.wild {
			connection = s.wildConnection
		}
		err := connection(ctx, stop)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errNext) {
			s.broken++
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %d chunks not acked: %w", s.name, len(s.unacked), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// connection uses one connection until it ends; nil means that all is sent and acked.
func (s *sender) connection(ctx context.Context, stop <-chan struct{}) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.addr)
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
func (s *sender) fill(stop <-chan struct{}, write func(sending) error) (stopped bool, err error) {
	select {
	case <-stop:
		return true, nil
	default:
	}
	for want := 1 + s.rand.IntN(inFlight); len(s.unacked) < want; {
		c := s.chunk()
		s.unacked = append(s.unacked, c)
		if err := write(c); err != nil {
			return false, err
		}
	}
	return false, nil
}

// ack reads the next ack; from a conn that is not nil only for so long.
func (s *sender) ack(conn net.Conn, acks *bufio.Reader) error {
	if conn != nil {
		if err := conn.SetReadDeadline(time.Now().Add(wildPatience)); err != nil {
			return err
		}
	}
	id, err := readAck(acks)
	if err != nil {
		return err
	}
	if id != s.unacked[0].id {
		return fmt.Errorf("ack of %q, want %q", id, s.unacked[0].id)
	}
	s.unacked = s.unacked[1:]
	return nil
}

func (s *sender) network() string {
	if strings.Contains(s.addr, "/") {
		return "unix"
	}
	return "tcp"
}

// chunk is a new chunk in one of the three modes.
func (s *sender) chunk() sending {
	events := make([]event, 1+s.rand.IntN(20))
	for i := range events {
		events[i] = named(fmt.Sprintf("%s-%d", s.name, len(s.sent)))
		events[i].pad = strings.Repeat("p", s.rand.IntN(cmp.Or(s.pad, 300)))
		s.sent = append(s.sent, events[i].name)
		if s.rand.IntN(10) == 0 && i == 0 {
			id := newID()
			return sending{id, messageMode(s.tag, id, events[0])}
		}
	}
	id := newID()
	if s.rand.IntN(3) == 0 {
		return sending{id, forwardMode(s.tag, id, events...)}
	}
	return sending{id, packed(s.tag, id, appendEntries(nil, events...))}
}

// A lane is a connection on which a test sends chunk by chunk.
type lane struct {
	t    testing.TB
	conn net.Conn
	acks *bufio.Reader
}

func (c *collector) lane() *lane { return c.laneFrom("127.0.0.1") }

func (c *collector) laneFrom(source string) *lane {
	conn := c.dialFrom(source)
	return &lane{t: c.t, conn: conn, acks: bufio.NewReader(conn)}
}

// write sends bytes.
func (l *lane) write(b []byte) {
	l.t.Helper()
	if _, err := l.conn.Write(b); err != nil {
		l.t.Fatal(err)
	}
}

// send sends a message and waits for its ack.
func (l *lane) send(message []byte, id string) {
	l.t.Helper()
	l.write(message)
	l.wantAck(id)
}

// patience bounds a wait for a peer: far longer than anything takes.
const patience = 4 * time.Minute

func (l *lane) wantAck(id string) {
	l.t.Helper()
	l.deadline(patience)
	got, err := readAck(l.acks)
	if err != nil || got != id {
		l.t.Fatalf("ack %q, %v; want %q", got, err, id)
	}
}

func (l *lane) deadline(d time.Duration) {
	l.t.Helper()
	if err := l.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		l.t.Fatal(err)
	}
}

// wantClosed waits until the collector closes the connection, which must not send anything before.
func (l *lane) wantClosed() {
	l.t.Helper()
	l.deadline(patience)
	b, err := l.acks.ReadByte()
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		l.t.Errorf("the connection is not closed: read %#x, %v", b, err)
	}
}

// wantAckOf wants the ack of an id that was bin.
func (l *lane) wantAckOf(id []byte) {
	l.t.Helper()
	l.deadline(patience)
	want := append(append(appendStr([]byte{0x81}, "ack"), 0xc4, byte(len(id))), id...)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(l.acks, got); err != nil || !bytes.Equal(got, want) {
		l.t.Fatalf("ack %q, %v; want %q", got, err, want)
	}
}
