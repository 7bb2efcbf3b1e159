// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"errors"
	"net"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// second serves another endpoint beside that of a bubble, and returns what ends its listener.
func second(s *Server, ep *Endpoint) (p *pipes, end func() error) {
	p = newPipes()
	served := make(chan error)
	go func() { served <- s.ServeEndpoint(p, ep) }()
	return p, func() error {
		_ = p.Close()
		return <-served
	}
}

// TestShutdownEndpoint: the connections of one endpoint get their acks and end, those of another
// one go on. What was counted stays, be the endpoint forgotten.
func TestShutdownEndpoint(t *testing.T) {
	g := new(gate)
	s := &Server{Handler: g}
	bubble(t, s, func(t *testing.T, p *pipes, peerErrors func() string) {
		g.change = make(chan struct{})
		ep := &Endpoint{}
		q, end := second(s, ep)
		stays, idle, busy, partial := p.peer(), q.peer(), q.peer(), q.peer()
		write(t, busy, slices.Concat(withID('a'), withID('b')))
		write(t, partial, slices.Concat(withID('c'), withID('d')[:10]))
		synctest.Wait()
		if err := end(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		done := make(chan error)
		go func() { done <- s.ShutdownEndpoint(t.Context(), ep) }()
		synctest.Wait()
		if !idle.closed() || busy.closed() || partial.closed() || stays.closed() {
			t.Fatalf("closed: %v %v %v %v", idle.closed(), busy.closed(), partial.closed(), stays.closed())
		}
		write(t, stays, withID('e'))
		g.store(3)
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		got, _ := busy.received()
		half, _ := partial.received()
		other, _ := stays.received()
		if !bytes.Equal(got, ackOf("ab")) || !bytes.Equal(half, ackOf("c")) || !bytes.Equal(other, ackOf("e")) ||
			!busy.closed() || !partial.closed() || stays.closed() || peerErrors() != "" {
			t.Errorf("%x %x %x %s", got, half, other, peerErrors())
		}
		before := s.Stats()
		if last := s.Retire(ep); last.Accepted != 3 || last.Acks != 3 || last.Connections != 0 {
			t.Errorf("%+v", last)
		}
		after := s.Stats()
		before.Memory, after.Memory = 0, 0
		if none := s.EndpointStats(ep); none.Accepted != 0 || !reflect.DeepEqual(before, after) {
			t.Errorf("%+v is not %+v; forgotten: %+v", after, before, none)
		}
	})
}

// TestShutdownEndpointRunsOut: what waits for its handler for too long is cut, and waited for.
func TestShutdownEndpointRunsOut(t *testing.T) {
	g := new(gate)
	s := &Server{Handler: g}
	bubble(t, s, func(t *testing.T, _ *pipes, peerErrors func() string) {
		g.change = make(chan struct{})
		ep := &Endpoint{}
		q, end := second(s, ep)
		c := q.peer()
		write(t, c, withID('a'))
		synctest.Wait()
		_ = end()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan error)
		go func() { done <- s.ShutdownEndpoint(ctx, ep) }()
		<-time.After(11 * time.Second) // of the bubble's
		if !c.closed() {
			t.Error("it is not cut")
		}
		g.store(1)
		if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if got, _ := c.received(); len(got) > 0 || peerErrors() != "" {
			t.Errorf("%x %s", got, peerErrors())
		}
		if n := s.EndpointStats(ep); n.Connections != 0 {
			t.Errorf("%+v", n)
		}
	})
}
