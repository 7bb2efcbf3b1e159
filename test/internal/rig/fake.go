// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/spillwaylog/spillway/internal/needs"
)

// A FakeServer is a Forward server with manners. It reads with a reader that is not this project's,
// and writes its acks by hand.
type FakeServer struct {
	t      testing.TB
	Addr   string  // its own, for it comes back
	Ledger *Ledger // of the chunks that came
	// Manners is what becomes of a chunk that came whole and was noted; false: the connection is
	// not read any more, but stays open. nil acks. It is called by one goroutine at a time.
	Manners func(c *FakeConn, id string) bool
	// Greet is what becomes of a new connection; false: it is not read. nil reads.
	Greet func(c *FakeConn) bool

	Mu       sync.Mutex             // over the fields below
	begun    bool                   // it has listened, or was told not to
	listener net.Listener           // nil: down
	Conns    map[*FakeConn]struct{} // open ones
	Accepted int                    // connections so far
	Chunks   int                    // so far, repeats too
	ended    bool
	all      sync.WaitGroup
}

// A FakeConn is a connection of one.
type FakeConn struct {
	*net.TCPConn
	server *FakeServer
	serial int // from 1
}

// NewFake makes a server. It begins to listen when it is asked for its URL, unless it was told to
// be down: Manners and Greet are set before.
func NewFake(t testing.TB) *FakeServer {
	t.Helper()
	s := &FakeServer{t: t, Addr: needs.Address(), Ledger: NewLedger(), Conns: map[*FakeConn]struct{}{}}
	t.Cleanup(func() {
		s.Mu.Lock()
		s.ended = true
		s.Mu.Unlock()
		s.Down()
		s.all.Wait()
	})
	return s
}

// URL is a destination with patience as short as a test wants it.
func (s *FakeServer) URL(query string) string {
	s.Mu.Lock()
	begun := s.begun
	s.Mu.Unlock()
	if !begun {
		s.Up()
	}
	u := "forward://" + s.Addr + "?min_backoff=1ms&max_backoff=20ms"
	if query != "" {
		u += "&" + query
	}
	return u
}

// Up begins to listen, again.
func (s *FakeServer) Up() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.begun = true
	if s.listener != nil || s.ended {
		return
	}
	l, err := net.Listen("tcp", s.Addr)
	// A process that another test starts holds a copy of the listener that was closed, from its
	// fork to its exec.
	for deadline := time.Now().Add(Patience); errors.Is(err, syscall.EADDRINUSE) &&
		time.Now().Before(deadline); l, err = net.Listen("tcp", s.Addr) {
		<-time.After(time.Millisecond)
	}
	if err != nil {
		s.t.Errorf("listen: %v", err)
		return
	}
	s.listener = l
	s.all.Go(func() { s.accept(l) })
}

// Down resets all connections and listens no more.
func (s *FakeServer) Down() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.begun = true
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
	s.HangUp()
}

// HangUp resets all connections.
func (s *FakeServer) HangUp() {
	for c := range s.Conns {
		c.Reset()
	}
}

func (s *FakeServer) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.Mu.Lock()
		s.Accepted++
		c := &FakeConn{conn.(*net.TCPConn), s, s.Accepted}
		s.Conns[c] = struct{}{}
		if s.listener != l {
			c.Reset() // it came while the server went down
		}
		s.Mu.Unlock()
		s.all.Go(func() { s.read(c) })
	}
}

func (s *FakeServer) read(c *FakeConn) {
	s.Mu.Lock()
	greet := s.Greet
	s.Mu.Unlock()
	if greet != nil && !greet(c) {
		return
	}
	r := msgp.NewReaderSize(c, 64<<10)
	for {
		m, err := readPacked(r)
		if err != nil {
			s.forget(c) // cut off, by this side or that
			return
		}
		s.Ledger.Take(m.tag, m.id, m.size, m.entries)
		s.Mu.Lock()
		s.Chunks++
		goOn := true
		if s.Manners != nil {
			goOn = s.Manners(c, m.id)
		} else {
			c.Ack(m.id)
		}
		s.Mu.Unlock()
		if !goOn {
			return
		}
	}
}

func (s *FakeServer) forget(c *FakeConn) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	delete(s.Conns, c)
	c.Close()
}

// A packedMessage is a PackedForward message as it came.
type packedMessage struct {
	tag, id string
	size    int
	entries []byte
}

func readPacked(r *msgp.Reader) (m packedMessage, err error) {
	n, err := r.ReadArrayHeader()
	if err != nil {
		return m, err
	}
	if n != 3 {
		return m, fmt.Errorf("an array of %d", n)
	}
	if m.tag, err = r.ReadString(); err != nil {
		return m, err
	}
	if m.entries, err = r.ReadBytes(nil); err != nil {
		return m, err
	}
	option := map[string]any{}
	if err := r.ReadMapStrIntf(option); err != nil {
		return m, err
	}
	m.id, _ = option["chunk"].(string)
	m.size = -1
	if n, ok := Whole(option["size"]); ok {
		m.size = int(n)
	}
	return m, nil
}

// AckBytes is an ack as it travels.
func AckBytes(id string) []byte { return AppendStr([]byte("\x81\xa3ack"), id) }

// Ack acks; the client may be gone.
func (c *FakeConn) Ack(id string) {
	if id != "" {
		c.Say(AckBytes(id))
	}
}

// Say writes bytes, to a client that may have gone.
func (c *FakeConn) Say(b []byte) {
	_, _ = c.Write(b) //nolint:errcheck // the client may be gone
}

// AckLater acks after a while.
func (c *FakeConn) AckLater(id string, d time.Duration) {
	time.AfterFunc(d, func() { c.Ack(id) })
}

// Reset ends the connection so that the other side sees an error rather than an end.
func (c *FakeConn) Reset() {
	_ = c.SetLinger(0) //nolint:errcheck // it may be closed already
	c.Close()
}
