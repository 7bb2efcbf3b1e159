// SPDX-License-Identifier: Apache-2.0

package test

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

// A fakeServer is a Forward server with manners. It reads with a reader that is not this project's,
// and writes its acks by hand.
type fakeServer struct {
	t      testing.TB
	addr   string // its own, for it comes back
	ledger *ledger
	// manners is what becomes of a chunk that came whole and was noted; false: the connection is
	// not read any more, but stays open. nil acks. It is called by one goroutine at a time.
	manners func(c *fakeConn, id string) bool
	// greet is what becomes of a new connection; false: it is not read. nil reads.
	greet func(c *fakeConn) bool

	mu       sync.Mutex
	begun    bool         // it has listened, or was told not to
	listener net.Listener // nil: down
	conns    map[*fakeConn]struct{}
	accepted int // connections so far
	chunks   int // so far, repeats too
	ended    bool
	all      sync.WaitGroup
}

type fakeConn struct {
	*net.TCPConn
	server *fakeServer
	serial int // from 1
}

// newFake makes a server. It begins to listen when it is asked for its url, unless it was told to
// be down: manners and greet are set before.
func newFake(t testing.TB) *fakeServer {
	t.Helper()
	s := &fakeServer{t: t, addr: needs.Address(), ledger: newLedger(), conns: map[*fakeConn]struct{}{}}
	t.Cleanup(func() {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.down()
		s.all.Wait()
	})
	return s
}

// url is a destination with patience as short as a test wants it.
func (s *fakeServer) url(query string) string {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		s.up()
	}
	u := "forward://" + s.addr + "?min_backoff=1ms&max_backoff=20ms"
	if query != "" {
		u += "&" + query
	}
	return u
}

// up begins to listen, again.
func (s *fakeServer) up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	if s.listener != nil || s.ended {
		return
	}
	l, err := net.Listen("tcp", s.addr)
	// A process that another test starts holds a copy of the listener that was closed, from its
	// fork to its exec.
	for deadline := time.Now().Add(patience); errors.Is(err, syscall.EADDRINUSE) &&
		time.Now().Before(deadline); l, err = net.Listen("tcp", s.addr) {
		<-time.After(time.Millisecond)
	}
	if err != nil {
		s.t.Errorf("listen: %v", err)
		return
	}
	s.listener = l
	s.all.Go(func() { s.accept(l) })
}

// down resets all connections and listens no more.
func (s *fakeServer) down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
	if s.listener != nil {
		s.listener.Close()
		s.listener = nil
	}
	s.hangUp()
}

// hangUp resets all connections.
func (s *fakeServer) hangUp() {
	for c := range s.conns {
		c.reset()
	}
}

func (s *fakeServer) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.accepted++
		c := &fakeConn{conn.(*net.TCPConn), s, s.accepted}
		s.conns[c] = struct{}{}
		if s.listener != l {
			c.reset() // it came while the server went down
		}
		s.mu.Unlock()
		s.all.Go(func() { s.read(c) })
	}
}

func (s *fakeServer) read(c *fakeConn) {
	s.mu.Lock()
	greet := s.greet
	s.mu.Unlock()
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
		s.ledger.take(m.tag, m.id, m.size, m.entries)
		s.mu.Lock()
		s.chunks++
		goOn := true
		if s.manners != nil {
			goOn = s.manners(c, m.id)
		} else {
			c.ack(m.id)
		}
		s.mu.Unlock()
		if !goOn {
			return
		}
	}
}

func (s *fakeServer) forget(c *fakeConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
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
	if n, ok := whole(option["size"]); ok {
		m.size = int(n)
	}
	return m, nil
}

// ackBytes is an ack as it travels.
func ackBytes(id string) []byte { return appendStr([]byte("\x81\xa3ack"), id) }

// ack acks; the client may be gone.
func (c *fakeConn) ack(id string) {
	if id != "" {
		c.say(ackBytes(id))
	}
}

func (c *fakeConn) say(b []byte) {
	_, _ = c.Write(b) //nolint:errcheck // the client may be gone
}

// ackLater acks after a while.
func (c *fakeConn) ackLater(id string, d time.Duration) {
	time.AfterFunc(d, func() { c.ack(id) })
}

// reset ends the connection so that the other side sees an error rather than an end.
func (c *fakeConn) reset() {
	_ = c.SetLinger(0) //nolint:errcheck // it may be closed already
	c.Close()
}
