// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"
)

// A misbehaving sender does to its connections what bad networks and bad programs do: it resets
// them, closes its half of them, goes away in the middle of a message, leaves acks unread for a
// while, gives up waiting for one. What is not acked it sends again on a fresh one, as [Sender]
// does.

// AckPatience is how long a misbehaving sender waits for an ack.
const AckPatience = 3 * time.Second

var (
	errTorn  = errors.New("gone in the middle of a message")
	errReset = errors.New("reset by its sender")
	errNext  = errors.New("all is acked on a half-closed connection")
)

// misbehavingConnection is connection, of a sender that misbehaves.
func (s *Sender) misbehavingConnection(ctx context.Context, stop <-chan struct{}) error {
	d := net.Dialer{Timeout: AckPatience}
	nc, err := d.DialContext(ctx, s.network(), s.Addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	conn := nc.(halfConn)
	acks := bufio.NewReader(conn)
	put := func(c sending) error { return s.put(conn, c) }
	for _, c := range s.unacked {
		if err := put(c); err != nil {
			return err
		}
	}
	for {
		stopped, err := s.fill(stop, put)
		if err != nil || stopped && len(s.unacked) == 0 {
			return err
		}
		if !stopped {
			switch s.Rand.IntN(60) {
			case 0:
				reset(conn)
				return errReset
			case 1:
				if err := conn.CloseWrite(); err != nil {
					return err
				}
				for len(s.unacked) > 0 {
					if err := s.ack(conn, acks); err != nil {
						return err
					}
				}
				return errNext
			case 2, 3:
				s.rest(ctx, 300*time.Millisecond)
			}
			s.rest(ctx, s.Pace)
		}
		if err := s.ack(conn, acks); err != nil {
			return err
		}
	}
}

// A halfConn can close its half: TCP and unix can.
type halfConn interface {
	net.Conn
	CloseWrite() error
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a connection that is gone already is no worse
	}
	conn.Close()
}

// put writes a chunk, or once in a while a part of it.
func (s *Sender) put(conn net.Conn, c sending) error {
	if err := conn.SetWriteDeadline(time.Now().Add(AckPatience)); err != nil {
		return err
	}
	if s.Rand.IntN(200) == 0 {
		if _, err := conn.Write(c.bytes[:s.Rand.IntN(len(c.bytes))]); err != nil {
			return err
		}
		if s.Rand.IntN(2) == 0 {
			reset(conn)
		}
		return errTorn
	}
	_, err := conn.Write(c.bytes)
	return err
}

// rest waits a random time of at most d.
func (s *Sender) rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(s.Rand.Int64N(int64(d)))):
	}
}
