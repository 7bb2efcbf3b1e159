// SPDX-License-Identifier: Apache-2.0

package test_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/compat/fluent/fluent"
	"github.com/spillwaylog/spillway/forward"
)

// patience is how long a test waits for what must come.
const patience = 4 * time.Minute

// event is one event as a server got it.
type event struct {
	Tag    string
	Time   time.Time
	Record any
}

// server is a Forward server that remembers its events.
type server struct {
	t  testing.TB
	l  net.Listener
	fs *forward.Server

	mu     sync.Mutex
	events []event
	ids    []string
	more   chan struct{} // closed when something came
	refuse bool          // store nothing
}

// listen starts a server: on network tcp at a free port of 127.0.0.1, or at address.
func listen(t testing.TB, network, address string) *server {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l)
}

func serve(t testing.TB, l net.Listener) *server {
	s := &server{t: t, l: l, more: make(chan struct{})}
	s.fs = &forward.Server{Handler: forward.HandlerFunc(s.take)}
	done := make(chan error, 1)
	go func() { done <- s.fs.Serve(l) }()
	t.Cleanup(func() {
		s.stop()
		<-done
	})
	return s
}

// stop closes the listener and all connections.
func (s *server) stop() { _ = s.fs.Close() }

func (s *server) take(_ context.Context, c *forward.Chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse {
		return errors.New("refused")
	}
	r := forward.ReadEntries(c.Entries)
	for e, ok := r.Next(); ok; e, ok = r.Next() {
		record, _, err := msgp.ReadIntfBytes(e.Record)
		if err != nil {
			s.t.Errorf("record: %v", err)
		}
		s.events = append(s.events, event{c.Tag, e.Time(), record})
	}
	s.ids = append(s.ids, string(c.ID))
	close(s.more)
	s.more = make(chan struct{})
	return nil
}

// wait returns the events as soon as there are n.
func (s *server) wait(n int) []event {
	s.t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		events, more := s.events[:len(s.events):len(s.events)], s.more
		s.mu.Unlock()
		if len(events) >= n {
			return events
		}
		select {
		case <-more:
		case <-late:
			s.t.Fatalf("%d events came, want %d", len(events), n)
		}
	}
}

// config points at the server.
func (s *server) config() fluent.Config { return pointAt(s.l.Addr()) }

func pointAt(a net.Addr) fluent.Config {
	if a.Network() == "unix" {
		return fluent.Config{FluentNetwork: "unix", FluentSocketPath: a.String()}
	}
	host, port, _ := net.SplitHostPort(a.String())
	n, _ := strconv.Atoi(port)
	return fluent.Config{FluentHost: host, FluentPort: n}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open makes a Fluent that the test closes.
func open(t testing.TB, c fluent.Config) *fluent.Fluent {
	t.Helper()
	f, err := fluent.New(c)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %#v\nwant %#v", got, want)
	}
}

// in calls f and fails the test, with all goroutines' stacks, if it does not return.
func in(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		buf := make([]byte, 1<<20)
		t.Fatalf("%s does not return\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// script is a server whose connections are played by the test.
type script struct {
	t     testing.TB
	l     net.Listener
	conns chan net.Conn
}

func play(t testing.TB) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &script{t: t, l: l, conns: make(chan net.Conn, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.conns <- nc
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		for len(s.conns) > 0 {
			_ = (<-s.conns).Close()
		}
	})
	return s
}

func (s *script) config() fluent.Config { return pointAt(s.l.Addr()) }

// accept returns the next connection.
func (s *script) accept() *peer {
	s.t.Helper()
	select {
	case nc := <-s.conns:
		s.t.Cleanup(func() { _ = nc.Close() })
		return &peer{s.t, nc, msgp.NewReader(nc)}
	case <-time.After(patience):
		s.t.Fatal("nobody connects")
		return nil
	}
}

// peer is the server's end of one connection.
type peer struct {
	t  testing.TB
	nc net.Conn
	r  *msgp.Reader
}

// message reads a message in MessagePack.
func (p *peer) message() fluent.Message {
	p.t.Helper()
	_ = p.nc.SetReadDeadline(time.Now().Add(patience))
	var m fluent.Message
	must(p.t, m.DecodeMsg(p.r))
	return m
}

// ack sends an ack.
func (p *peer) ack(id string) {
	p.t.Helper()
	b, err := fluent.AckResp{Ack: id}.MarshalMsg(nil)
	must(p.t, err)
	_, err = p.nc.Write(b)
	must(p.t, err)
}

func text(format string, args ...any) map[string]any {
	return map[string]any{"log": fmt.Sprintf(format, args...)}
}
