// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// load sends messages of one shape to a server.
type load struct {
	shape       shape
	messages    int // in all
	connections int
	window      int // messages in flight on a connection; 0: no acks are waited for
}

// ackSize is the length of an ack: a map of one pair, "ack" and the id.
const ackSize = 1 + 4 + 1 + len(id)

// send returns when all is acked, or without acks when the server has read it.
func (l load) send(addr string) error {
	var all sync.WaitGroup
	errs := make([]error, l.connections)
	for i := range l.connections {
		all.Go(func() { errs[i] = l.connection(addr, l.messages/l.connections) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (l load) connection(addr string, n int) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if l.window == 0 {
		return l.flood(c, n)
	}
	return l.acked(c, n)
}

// flood writes without waiting, many messages in a segment, and then waits for
// the server to have read them.
func (l load) flood(c net.Conn, n int) error {
	one, _ := l.shape.build(l.shape.events)
	batch := max(1, (64<<10)/len(one))
	many := bytes.Repeat(one, batch)
	for ; n > 0; n -= batch {
		if _, err := c.Write(many[:min(n, batch)*len(one)]); err != nil {
			return err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c)
	return err
}

// acked keeps window messages in flight: for each ack that comes it sends
// another message. What may be sent at once is written at once.
func (l load) acked(c net.Conn, n int) error {
	one, at := l.shape.build(l.shape.events)
	many := bytes.Repeat(one, l.window)
	acks := make([]byte, l.window*ackSize)
	ids := newIDs()
	room, have, missing := l.window, 0, n
	for missing > 0 {
		k := min(room, n)
		for i := range k {
			ids.put(many[i*len(one)+at:])
		}
		if _, err := c.Write(many[:k*len(one)]); err != nil {
			return err
		}
		n, room = n-k, room-k
		got, err := c.Read(acks[have:])
		if err != nil {
			return fmt.Errorf("%d acks missing: %w", missing, err)
		}
		have += got
		whole := have / ackSize
		if whole > 0 && !bytes.HasPrefix(acks, []byte("\x81\xa3ack\xb8")) {
			return fmt.Errorf("no ack: % x", acks[:have])
		}
		have = copy(acks, acks[whole*ackSize:have])
		room, missing = room+whole, missing-whole
	}
	return nil
}

// ids makes ids that are not repeated: a random start, then counted.
type ids struct {
	random [16]byte
	n      uint64
}

func newIDs() *ids {
	var s ids
	rand.Read(s.random[:])
	return &s
}

func (s *ids) put(at []byte) {
	s.n++
	binary.BigEndian.PutUint64(s.random[8:], s.n)
	base64.StdEncoding.Encode(at[:len(id)], s.random[:])
}
