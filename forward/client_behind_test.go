// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
)

// behind is a connection whose second write fails, and whose acks are read only after that: when it
// is closed, or half of it.
type behind struct {
	net.Conn
	writes int
	once   sync.Once
	failed chan struct{}
}

func (b *behind) Write(p []byte) (int, error) {
	if b.writes++; b.writes > 1 {
		return 0, syscall.EPIPE
	}
	return b.Conn.Write(p)
}

func (b *behind) Read(p []byte) (int, error) {
	<-b.failed
	return b.Conn.Read(p)
}

func (b *behind) CloseWrite() error {
	b.once.Do(func() { close(b.failed) })
	return nil
}

func (b *behind) Close() error {
	_ = b.CloseWrite()
	return b.Conn.Close()
}

// An ack that was in the socket when the next write failed counts: its chunk is not sent again.
func TestAckBehindFailure(t *testing.T) {
	for name, twice := range map[string]bool{"acks and closes": false, "acks and stays": true} {
		t.Run(name, func(t *testing.T) {
			c := &Client{}
			second := make(chan struct{})
			serve := func(n int, fc *fakeConn) {
				if n > 1 {
					fc.ackAll()
					return
				}
				ch, _ := fc.next()
				close(second)
				fc.ack(ch.ID)
				if twice {
					fc.drain()
				}
			}
			withClient(t, c, serve, func(t *testing.T, f *fake) {
				c.Dial = func(ctx context.Context) (net.Conn, error) {
					nc, err := f.dial(ctx)
					f.mu.Lock()
					defer f.mu.Unlock()
					if f.conns == 1 {
						nc = &behind{Conn: nc, failed: make(chan struct{})}
					}
					return nc, err
				}
				var told []error
				c.Report = func(err error) { told = append(told, err) }
				var first error
				var wg sync.WaitGroup
				wg.Go(func() { first = c.Send(t.Context(), oneChunk("a")) })
				<-second
				noErrors(t, []error{c.Send(t.Context(), oneChunk("b"))})
				wg.Wait()
				noErrors(t, []error{first})
				if got := f.logged(); got != "1: a, 2: b" {
					t.Error(got)
				}
				// B was written twice, once in vain.
				if st := c.Stats(); st.Acked != 2 || st.Resent != 1 || st.Failures != 1 {
					t.Errorf("%+v", st)
				}
				if len(told) != 1 || !errors.Is(told[0], syscall.EPIPE) {
					t.Errorf("%v", told)
				}
			})
		})
	}
}
