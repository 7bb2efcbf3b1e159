// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// ErrServerClosed is what Serve and ServeHeartbeat return after Shutdown or Close.
var ErrServerClosed = errors.New("forward: server closed")

// A Server accepts Forward connections and hands chunks to its Handler. Its fields are set before
// the first call of Serve and not changed after. The zero value needs a Handler and nothing else.
type Server struct {
	// Handler stores the chunks: a Handler or a GroupHandler.
	Handler Handler
	// MaxChunk is the largest chunk as it comes over the wire, in bytes: 64 MiB if 0, at most 1
	// GiB. A larger one is refused and its connection closed (docs/forward.md rule 30).
	MaxChunk int64
	// MaxDecompressed is the largest chunk after decompression: 256 MiB if 0, at most 1 GiB. A
	// larger one is refused.
	MaxDecompressed int64
	// Memory is what the buffers of all connections together may take, in use and, of large ones,
	// kept for their next use: 64 MiB if 0. Beyond it connections wait for each other; the last
	// quarter is kept for those with small messages. One message at a time may go beyond it, so
	// that MaxChunk and MaxDecompressed hold whatever Memory is. doc.go says what counts.
	Memory int64
	// MaxEvent is the largest event, in bytes of MessagePack: any if 0, else at least 64 KiB. A
	// larger one is left out of its chunk, counted, and given to SetAside; Endpoint.RefuseLarge
	// refuses the chunk. With a MaxEvent a chunk that takes more than 16 MiB decompressed, or twice
	// MaxEvent if that is more, is never in memory as a whole: it is handed on Compressed alone,
	// without Entries, for Inflater to read.
	MaxEvent int64
	// SetAside stores an event that is too large. After an error the connection is closed, and its
	// chunk not acked. What it is called for may come again: when the chunk was not stored after
	// all, or its sender missed the ack. nil: such events are counted, told, and gone.
	SetAside func(ctx context.Context, e *LargeEvent) error
	// LargeTurn waits until an event that is too large may be in memory, and returns what ends
	// that; nil: it always may. It returns soon after ctx is done.
	LargeTurn func(ctx context.Context) (done func())
	// MaxInFlight is how many chunks of one connection an AsyncHandler may have at the same time:
	// 256 if 0.
	MaxInFlight int
	// RefuseInvalid refuses a chunk with invalid entries. Otherwise they are left out and counted,
	// and the rest is stored (rule 23).
	RefuseInvalid bool
	// PeerError is called with what is wrong with peers and what they send. Many goroutines call
	// it, and it must not block. Nil: the counters of Stats tell.
	PeerError func(PeerError)
	// Connection is told of each connection, when it was accepted (open) and when it has ended. It
	// is called by many goroutines, must not block, and may be nil. Host, User and TLS are known
	// only when it has ended, and are not to be read before.
	Connection func(s *Sender, open bool)
	// WriteTimeout is how long a peer may leave its acks unread: 30 s if 0. Then it is cut off.
	WriteTimeout time.Duration
	// StallTimeout is how long a sender may take for one part in 64 of what its connection holds,
	// while others wait for memory: 10 s if 0. One that sends less than such a rate for a tenth of
	// it is cut, for a hundredth of it while most that are waited for do not go on. Where nobody
	// waits, a sender may be as slow as it likes.
	StallTimeout time.Duration
	// MaxConnections is how many connections there may be: any number if 0. Beyond it the one that
	// has been idle longest is closed for a new one.
	MaxConnections int
	// HandshakeTimeout is how long a connection may take for the handshakes of TLS and of Forward
	// together: 10 s if 0.
	HandshakeTimeout time.Duration
	// Endpoint is that of Serve and ListenAndServe.
	Endpoint Endpoint

	once    sync.Once
	serial  atomic.Uint64
	watcher watcher
	roster
	shared
}

// init resolves the fields.
func (s *Server) init() {
	s.once.Do(func() {
		or := func(v, d, limit int64) int64 {
			if v <= 0 {
				v = d
			}
			return min(v, limit)
		}
		s.limits = limits{
			maxInFlight:     int(or(int64(s.MaxInFlight), DefaultMaxInFlight, 1<<20)),
			maxChunk:        or(s.MaxChunk, DefaultMaxChunk, wire.LargestChunk),
			maxDecompressed: or(s.MaxDecompressed, DefaultMaxDecompressed, wire.LargestChunk),
			refuseInvalid:   s.RefuseInvalid,
			writeTimeout:    time.Duration(or(int64(s.WriteTimeout), int64(DefaultWriteTimeout), 1<<62)),
			loginTimeout:    time.Duration(or(int64(s.HandshakeTimeout), int64(DefaultHandshake), 1<<62)),
		}
		s.maxMessage = s.maxChunk + frameSize
		s.later = s.maxDecompressed
		if s.MaxEvent > 0 {
			s.maxEvent = max(s.MaxEvent, minMaxEvent)
			s.later = min(max(maxLater, 2*s.maxEvent), s.maxDecompressed)
		}
		s.handler, s.aside, s.largeTurn, s.peerError = s.Handler, s.SetAside, s.LargeTurn, s.PeerError
		s.group, _ = s.Handler.(GroupHandler)
		if s.group == nil {
			s.async, _ = s.Handler.(AsyncHandler)
		}
		s.began = time.Now()
		if s.now == nil {
			s.now = time.Now
		}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		s.stop = make(chan struct{})
		s.begin(&s.shared)
		s.watcher.roster, s.watcher.lacking = &s.roster, make(chan struct{}, 1)
		s.mem = budget.New(or(s.Memory, DefaultMemory, 1<<62), s.stop, s.watcher.lack)
		s.watch.Begin(time.Duration(or(int64(s.StallTimeout), int64(DefaultStallTimeout), 1<<62)))
		s.inflaters = makeInflaters(s.mem.Limit())
	})
}

// Serve is ServeEndpoint with s.Endpoint.
func (s *Server) Serve(l net.Listener) error { return s.ServeEndpoint(l, &s.Endpoint) }

// ServeEndpoint accepts connections of l, which may be of any kind, treats them as ep says, until
// Shutdown or Close, and returns ErrServerClosed; any other error is that of the listener, or says
// what is wrong with ep. It closes l. It may be called for several listeners at the same time.
func (s *Server) ServeEndpoint(l net.Listener, ep *Endpoint) error {
	s.init()
	config, err := ep.check()
	if s.Handler == nil {
		err = errors.New("forward: a server without a handler")
	}
	if err != nil {
		_ = l.Close() // nothing was served
		return err
	}
	if !s.listen(l) {
		return ErrServerClosed
	}
	defer s.unlisten(l)
	var delay time.Duration
	for {
		nc, err := l.Accept()
		if err != nil {
			if s.down.Load() {
				return ErrServerClosed
			}
			if !passing(err) {
				return err
			}
			s.tell(s.counts.of(ep, 0), PeerError{
				Kind: PeerNotAccepted, Action: ActionKeep,
				Sender: &Sender{Endpoint: ep, Addr: l.Addr(), Peer: peerOf(l.Addr())}, Err: err,
			})
			s.giveWay(1) // perhaps it is for them that the system is short of something
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(delay):
			case <-s.stop:
			}
			continue
		}
		delay = 0
		// Inputs of lines and of syslog have such a limit of their own: enter in
		// collector/lines.go and in cmd/internal/syslog/stream.go.
		s.makeRoom(s.MaxConnections)
		s.start(nc, ep, config)
	}
}

// passing tells whether Accept may work again: the system has too many open files or no memory just
// now, or it is one connection's error that there is no connection for any more.
func passing(err error) bool {
	var t interface{ Temporary() bool }
	if errors.As(err, &t) && t.Temporary() {
		return true
	}
	for _, e := range [...]syscall.Errno{
		syscall.ENOBUFS, syscall.ENOMEM, syscall.EPERM, syscall.EPROTO, syscall.ENOPROTOOPT,
		syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTDOWN, syscall.EHOSTUNREACH,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// start serves one connection in a goroutine of its own.
func (s *Server) start(nc net.Conn, ep *Endpoint, config *tls.Config) {
	if c := s.admit(nc, ep, config); c != nil {
		go s.serve(c)
	}
}

// admit makes a connection, and takes it in; nil: it came too late, and is closed.
func (s *Server) admit(nc net.Conn, ep *Endpoint, config *tls.Config) *conn {
	c := newConn(&s.shared, nc, ep, config, s.serial.Add(1), s.join(peerOf(nc.RemoteAddr())))
	if !s.enter(&c.remote) {
		_ = nc.Close()
		return nil
	}
	c.count.accepted.Add(1)
	if s.Connection != nil {
		s.Connection(c.sender, true)
	}
	return c
}

// serve serves it until it has ended.
func (s *Server) serve(c *conn) {
	defer s.running.Done()
	c.serve()
	if s.Connection != nil {
		s.Connection(c.sender, false)
	}
	s.leave(&c.remote)
}

// Shutdown stops accepting and reading, lets the handlers finish what they were given, writes the
// acks, and closes the connections: a chunk in flight is either stored and acked, or neither
// (docs/forward.md rule 46). Messages of which only a part was read are discarded. If ctx ends
// first, handlers see their ctx done, connections are cut, and Shutdown returns ctx's error without
// waiting for them; Close then waits.
func (s *Server) Shutdown(ctx context.Context) error {
	s.init()
	done := s.drain()
	select {
	case <-done:
		s.abort()
		s.running.Wait()
		return nil
	case <-ctx.Done():
		s.abort()
		return ctx.Err()
	}
}

// ShutdownEndpoint is Shutdown for the connections of one endpoint, the pointer given to
// ServeEndpoint: its listeners are closed before, and it is not served again. If ctx ends first its
// connections are cut, what they have given to handlers is waited for, and ctx's error returned.
func (s *Server) ShutdownEndpoint(ctx context.Context, ep *Endpoint) error {
	s.init()
	done := s.drainEndpoint(ep)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.abortEndpoint(ep)
		<-done
		return ctx.Err()
	}
}

// Close cuts all connections, whatever is in flight, and returns when all goroutines have ended,
// which takes as long as the handlers take to see that their ctx is done. It may be called more
// than once, and not by a handler.
func (s *Server) Close() error {
	s.init()
	s.drain()
	s.abort()
	s.running.Wait()
	return nil
}
