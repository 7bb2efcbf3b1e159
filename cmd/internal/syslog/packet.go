// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
)

// A packetSocket is a socket of datagrams.
type packetSocket interface {
	// read reads as many datagrams as there are, and waits for one if there is none. They are valid
	// until the next call.
	read() ([]datagram, error)
	LocalAddr() net.Addr
	SetReadDeadline(t time.Time) error
	Close() error
}

// A datagram is a message, and what came with it.
type datagram struct {
	text    []byte // all of it, or as much as is read
	dropped uint32 // how many the kernel had dropped by then
	known   bool   // if it says so
	from    origin
}

// listenPackets opens the socket, and asks for a receive buffer.
func (s *settings) listenPackets() (packetSocket, error) {
	c, err := net.ListenPacket(s.network, s.address)
	if err != nil {
		return nil, err
	}
	b, ok := c.(interface{ SetReadBuffer(bytes int) error })
	if ok && s.receive > 0 && !forceBuffer(c, int(s.receive)) {
		if err := b.SetReadBuffer(int(s.receive)); err != nil {
			return nil, errors.Join(fmt.Errorf("receive_buffer: %w", err), c.Close())
		}
	}
	socket, err := newPacketSocket(c, s.maxDatagram())
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return socket, nil
}

// maxDatagram is how many bytes of a datagram are read: one more than are kept.
func (s *settings) maxDatagram() int { return min(s.maxMessage, 64<<10) + 1 }

// A receiver reads datagrams in one goroutine while another stores what came before.
//
//	read ──► filling ──┐
//	                   ⇅  exchanged when storing is through
//	sink ◄── storing ◄─┘
type receiver struct {
	in      *input
	mu      sync.Mutex
	filling *batch
	over    bool
	room    *sync.Cond // for the reader: the batch is not full
	some    *sync.Cond // for the storer: there is something
}

// receiveAll reads datagrams until the deadline that end sets.
func (in *input) receiveAll(ctx context.Context, sink collector.Sink) error {
	r := &receiver{in: in, filling: in.batch()}
	r.room, r.some = sync.NewCond(&r.mu), sync.NewCond(&r.mu)
	done := make(chan error, 1)
	go func() { done <- r.storeAll(ctx, sink) }()
	err := r.readAll()
	r.mu.Lock()
	r.over = true
	r.some.Signal()
	r.mu.Unlock()
	return errors.Join(<-done, err)
}

// readAll returns nil when the deadline has passed.
func (r *receiver) readAll() error {
	in := r.in
	var before uint32
	var e ending
	for {
		burst, err := in.packets.read()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			if e.goesOn(in, in.packets, err) {
				continue
			}
			return nil
		case err != nil:
			in.warn(codes.DatagramBroken, "a datagram cannot be read", "err", err)
			<-time.After(time.Millisecond) // or a lasting error would take a processor
			continue
		}
		for i := range burst {
			if d := &burst[i]; d.known && d.dropped != before {
				in.dropped.Add(int64(d.dropped - before))
				in.warn(codes.DatagramsLost, "the kernel had no room for datagrams: they are lost; see receive_buffer",
					"datagrams", d.dropped-before)
				before = d.dropped
			}
		}
		if !r.take(burst) || !e.goesOn(in, in.packets, nil) {
			return nil
		}
	}
}

// take puts datagrams into the batch. It reports false when the sink takes no more.
func (r *receiver) take(burst []datagram) bool {
	in, now := r.in, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range burst {
		for r.filling.bytes >= batchBytes && !r.over {
			r.room.Wait()
		}
		if r.over {
			return false
		}
		d := &burst[i]
		in.bytes.Add(int64(len(d.text)))
		cut := len(d.text) > in.maxMessage || len(d.text) == in.maxDatagram()
		text := d.text[:min(len(d.text), in.maxMessage)]
		if count, head, _ := octets(text); head > 0 && count <= len(d.text)-head { // some count in datagrams, too
			text = text[head:]
		}
		r.filling.add(text, cut, now, d.from)
		r.some.Signal()
	}
	return true
}

// storeAll stores what comes until it is over.
func (r *receiver) storeAll(ctx context.Context, sink collector.Sink) error {
	storing := r.in.batch()
	for {
		r.mu.Lock()
		for len(r.filling.order) == 0 && !r.over {
			r.some.Wait()
		}
		storing, r.filling = r.filling, storing
		over := r.over
		r.room.Signal()
		r.mu.Unlock()
		if err := storing.store(ctx, sink); err != nil {
			r.mu.Lock()
			r.over = true
			r.room.Signal()
			r.mu.Unlock()
			r.in.end()
			return err
		}
		if over {
			return nil
		}
	}
}

// A plainSocket reads one datagram at a time, of any kind of socket.
type plainSocket struct {
	net.PacketConn
	buf []byte
	one [1]datagram
}

func (s *plainSocket) read() ([]datagram, error) {
	n, addr, err := s.ReadFrom(s.buf)
	if err != nil {
		return nil, err
	}
	s.one[0] = datagram{text: s.buf[:n]}
	if addr != nil {
		s.one[0].from.name = addr.String()
	}
	return s.one[:], nil
}
