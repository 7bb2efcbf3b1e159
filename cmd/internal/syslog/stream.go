// SPDX-License-Identifier: Apache-2.0

package syslog

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/collector"
)

// serve takes connections until ctx ends.
func (in *input) serve(ctx, storing context.Context, sink collector.Sink) error {
	var all sync.WaitGroup
	defer all.Wait()
	failed := make(chan error, 1)
	places := make(chan struct{}, in.places)
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
				return err
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			in.warn("a connection cannot be taken", "err", err) // of files there are too many, say
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		all.Go(func() {
			defer func() { <-places }()
			if err := in.connection(storing, sink, c); err != nil {
				select {
				case failed <- err:
					_ = in.listener.Close() // so that Accept returns
				default:
				}
			}
		})
	}
}

// connection reads one connection to its end. Its error is that of the sink.
func (in *input) connection(ctx context.Context, sink collector.Sink, c net.Conn) error {
	in.mu.Lock()
	if in.ended {
		in.mu.Unlock()
		return c.Close()
	}
	in.conns[c] = struct{}{}
	in.mu.Unlock()
	in.open.Add(1)
	defer func() {
		in.open.Add(-1)
		in.mu.Lock()
		delete(in.conns, c)
		in.mu.Unlock()
		_ = c.Close() // all was read that is to be read
	}()
	peer, shown := c.RemoteAddr().String(), ""
	if in.peerKey != "" {
		shown = peer
	}
	f := framer{most: in.most}
	b := in.newBatch()
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		in.bytes.Add(int64(n))
		f.feed(buf[:n])
		now := time.Now()
		one := func(message []byte, cut bool) {
			if cut {
				in.warn("a message is cut", "peer", peer, "max_message", in.most)
			}
			b.add(message, cut, now, shown)
		}
		f.each(one)
		if err != nil {
			f.last(one)
		}
		if serr := b.store(ctx, sink); serr != nil {
			return serr
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		default:
			in.warn("a connection ended", "peer", peer, "err", err)
			return nil
		}
	}
}
