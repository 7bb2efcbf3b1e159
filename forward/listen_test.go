// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
)

// listened waits until a server listens on TCP or a unix socket, and returns the address.
func listened(t *testing.T, s *Server) net.Addr {
	t.Helper()
	var addr net.Addr
	until(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for l := range s.listeners {
			if l, ok := l.(net.Listener); ok {
				addr = l.Addr()
			}
		}
		return addr != nil
	})
	return addr
}

func TestRule41ListenAndServe(t *testing.T) {
	for _, network := range []string{"tcp", "tcp4", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), "s")
			}
			s := &Server{Handler: HandlerFunc(func(context.Context, *Chunk) error { return nil })}
			s.init()
			served := make(chan error)
			go func() { served <- s.ListenAndServe(network, address) }()
			addr := listened(t, s)
			c := &Client{Network: addr.Network(), Address: addr.String()}
			if err := c.Send(t.Context(), &Chunk{Tag: "t", Entries: entries(1), Events: 1}); err != nil {
				t.Error(err)
			}
			_ = c.Close()
			if network != "unix" {
				u, err := net.Dial("udp", addr.String())
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				if _, err := u.Write([]byte{0}); err != nil {
					t.Fatal(err)
				}
				if got := readAll(t, u, 1); got[0] != 0 {
					t.Errorf("heartbeat: %x", got)
				}
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			if err := <-served; !errors.Is(err, ErrServerClosed) {
				t.Error(err)
			}
			if err := s.ListenAndServe(network, address); !errors.Is(err, ErrServerClosed) {
				t.Error(err)
			}
		})
	}
	s := &Server{Handler: HandlerFunc(func(context.Context, *Chunk) error { return nil })}
	if err := s.ListenAndServe("udp", ":0"); err == nil || errors.Is(err, ErrServerClosed) {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.ListenAndServe("tcp", l.Addr().String()); err == nil || errors.Is(err, ErrServerClosed) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
