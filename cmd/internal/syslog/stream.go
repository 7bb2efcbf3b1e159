// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/collector"
	"github.com/spillwaylog/spillway/internal/codes"
)

// serve takes connections until ctx ends.
func (in *input) serve(ctx, storing context.Context, sink collector.Sink) error {
	var all sync.WaitGroup
	defer all.Wait()
	failed := make(chan error, 1)
	// One that is to make room stays until what it sent is stored. While the journal takes nothing,
	// these must not become more and more.
	places := make(chan struct{}, 2*in.maxConnections)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			in.end()
			return err
		}
		c, err := in.listener.Accept()
		if err != nil {
			<-places
			select {
			case err := <-failed:
				in.end()
				return err
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			// Of files there are too many, say.
			in.warn(codes.PeerNotAccepted, "a connection cannot be taken", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		silent, ok := in.enter(c)
		if !ok {
			<-places
			_ = c.Close() // nothing of it was read
			continue
		}
		all.Go(func() {
			defer func() { <-places }()
			if err := in.connection(storing, sink, c, silent); err != nil {
				select {
				case failed <- err:
					_ = in.listener.Close() // so that Accept returns
				default:
				}
			}
		})
	}
}

// enter notes a connection, and since when it is silent; false: the input has ended. Where there is
// no place for one more, the one that has been silent for the longest time ends: what was read of
// it is stored. roster.makeRoom in forward/room.go and lineInput.enter in collector/lines.go do the
// same for their connections.
func (in *input) enter(c net.Conn) (silent *atomic.Int64, ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return nil, false
	}
	if len(in.conns) >= in.maxConnections {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(in.conns)), func(a, b net.Conn) int {
			return cmp.Compare(in.conns[a].Load(), in.conns[b].Load())
		})
		in.cutLocked(oldest)
		in.warn(codes.PeerTooMany, "a silent connection is closed for a new one", "peer", oldest.RemoteAddr().String(),
			"max_connections", in.maxConnections)
	}
	silent = new(atomic.Int64)
	silent.Store(time.Now().UnixNano())
	in.conns[c] = silent
	in.open.Add(1)
	return silent, true
}

func (in *input) leave(c net.Conn) {
	in.open.Add(-1)
	in.mu.Lock()
	delete(in.conns, c)
	delete(in.shown, c)
	in.mu.Unlock()
	_ = c.Close() // all was read that is to be read
}

// connection reads one connection to its end. Its error is that of the sink.
func (in *input) connection(ctx context.Context, sink collector.Sink, c net.Conn, silent *atomic.Int64) error {
	defer in.leave(c)
	from := origin{name: c.RemoteAddr().String()}
	if err := in.greet(c); err != nil {
		if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
			in.bad(codes.PeerHandshakeFailed, "connection closed", err, from)
		}
		return nil
	}
	f, e := framer{maxMessage: in.maxMessage, memory: &in.memory}, ending{}
	defer f.free()
	for {
		n, err := c.Read(f.room())
		in.bytes.Add(int64(n))
		f.took(n)
		now := time.Now()
		if n > 0 && silent.Load() != math.MaxInt64 {
			silent.Store(now.UnixNano())
		}
		b := in.batch() // a connection that is silent has none
		one := func(message []byte, cut bool) { b.add(message, cut, now, from) }
		f.each(one)
		serr := b.store(ctx, sink)
		goesOn := serr == nil && e.goesOn(in, c, err)
		if !goesOn && serr == nil {
			f.last(one)
			serr = b.store(ctx, sink)
		}
		in.batches.Put(b)
		if goesOn {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
			in.warn(codes.PeerBroken, "a connection ended", "peer", from.String(), "err", err)
		}
		return serr
	}
}
