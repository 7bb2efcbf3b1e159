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
)

// prepare asks for a receive buffer, and for the kernel's count of what it dropped.
func (in *input) prepare() error {
	c, ok := in.packets.(interface{ SetReadBuffer(bytes int) error })
	if ok && in.receive > 0 && !forceBuffer(in.packets, int(in.receive)) {
		if err := c.SetReadBuffer(int(in.receive)); err != nil {
			return fmt.Errorf("receive_buffer: %w", err)
		}
	}
	return countDrops(in.packets)
}

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
	buf := make([]byte, min(in.most, 64<<10)+1)
	oob := make([]byte, 128)
	var before uint32
	var e ending
	for {
		n, dropped, known, from, err := receive(in.packets, buf, oob)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
			if e.goesOn(in, in.packets, err) {
				continue
			}
			return nil
		case err != nil:
			in.warn("a datagram cannot be read", "err", err)
			<-time.After(time.Millisecond) // or a lasting error would take a processor
			continue
		}
		if known && dropped != before {
			in.dropped.Add(int64(dropped - before))
			in.warn("the kernel had no room for datagrams: they are lost; see receive_buffer", "datagrams", dropped-before)
			before = dropped
		}
		in.bytes.Add(int64(n))
		cut := n > in.most || n == len(buf)
		text := buf[:min(n, in.most)]
		if count, head, _ := octets(text); head > 0 && count <= n-head { // some count in datagrams, too
			text = text[head:]
		}
		r.mu.Lock()
		for r.filling.bytes >= batchBytes && !r.over {
			r.room.Wait()
		}
		if r.over { // the sink takes no more
			r.mu.Unlock()
			return nil
		}
		r.filling.add(text, cut, time.Now(), from)
		if len(r.filling.order) == 1 && r.filling.order[0].Events == 1 {
			r.some.Signal()
		}
		r.mu.Unlock()
		if !e.goesOn(in, in.packets, nil) {
			return nil
		}
	}
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

// receiveFrom reads a datagram of any kind of socket.
func receiveFrom(c net.PacketConn, buf []byte) (n int, from origin, err error) {
	n, addr, err := c.ReadFrom(buf)
	if addr != nil {
		from.name = addr.String()
	}
	return n, from, err
}
