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

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// ErrServerClosed is what Serve and ServeHeartbeat return after Shutdown or Close.
var ErrServerClosed = errors.New("forward: server closed")

// A Handler stores chunks.
type Handler interface {
	// ServeForward returns nil when the chunk is stored as promised; only then, and if the chunk
	// has an id, its ack goes out. After an error no ack is written and the connection is closed,
	// so that the client sends the chunk again elsewhere or later.
	//
	// The chunk and its bytes are lent: they are valid until ServeForward returns, and must not be
	// changed. It is never empty: chunks that have no events left are acked without being handed
	// on. One connection's chunks come one after another in the order in which they were sent,
	// those of different connections at the same time. ServeForward may block: meanwhile nothing
	// more is read from that connection. It returns soon after ctx is done, which happens when the
	// server is closed or its Shutdown runs out of time.
	ServeForward(ctx context.Context, c *Chunk) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, c *Chunk) error

// ServeForward calls f.
func (f HandlerFunc) ServeForward(ctx context.Context, c *Chunk) error { return f(ctx, c) }

// A GroupHandler is a Handler that takes together what arrived together, and tells later when it is
// stored. The server then calls ServeGroup in place of ServeForward.
type GroupHandler interface {
	Handler
	// ServeGroup takes the chunks that one read of a connection completed, at least one. It may
	// block, as ServeForward may. When it returns, slice, chunks and bytes are lent no longer. An
	// error: none of them is acked, and the connection is closed.
	//
	// wait returns nil when all of them are stored as promised: then their acks go out, in order,
	// in one write. Its error has the same consequences as that of ServeGroup. A nil wait says that
	// all is stored already, or that no chunk has an id. While the server waits, in another
	// goroutine, it goes on reading, so there are several groups of a connection on their way; it
	// waits for them in order.
	//
	// With a ctx that is done already, wait is a question: it returns nil if all is stored, any
	// error if not yet, and soon. The server asks so to let acks leave together; it calls wait
	// again after that.
	ServeGroup(ctx context.Context, chunks []*Chunk) (wait func(ctx context.Context) error, err error)
}

// What Server and Client have where a field is zero, and limits that no field moves.
const (
	DefaultMaxInFlight     = 256
	DefaultMaxChunk        = 64 << 20
	DefaultMaxDecompressed = 256 << 20
	DefaultMemory          = 64 << 20
	DefaultWriteTimeout    = 30 * time.Second
	DefaultStallTimeout    = 10 * time.Second
	DefaultHandshake       = 10 * time.Second // HandshakeTimeout
	MaxTag                 = wire.MaxTag      // 1 KiB: bytes of a tag
	MaxID                  = wire.MaxID       // 64 KiB: bytes of a chunk id

	leastMaxEvent = 64 << 10
	frameSize     = MaxTag + MaxID + 64<<10
)

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
	// Trouble is told of whatever is wrong with what peers send. It is called by many goroutines
	// and must not block. Nil: the counters of Stats tell.
	Trouble func(Trouble)
	// Connection is told of each connection, when it was accepted (open) and when it has ended. It
	// is called by many goroutines, must not block, and may be nil.
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

	once            sync.Once
	maxInFlight     int
	maxChunk        int64
	maxMessage      int64 // MaxChunk and its frame
	maxDecompressed int64
	writeTimeout    time.Duration
	began           time.Time
	loginTimeout    time.Duration
	now             func() time.Time
	group           GroupHandler // nil: Handler is no more than that
	async           AsyncHandler // nil: nor that
	mem             budget
	watch           watch
	pool            pool
	hosts           hosts
	inflaters       chan *wire.Inflaters // those that nobody uses
	ctx             context.Context      // of the handlers
	cancel          context.CancelFunc
	stop            chan struct{} // closed: no more waiting for memory, connections go at once

	down     atomic.Bool // no new connections, nothing more is read; written once by drain
	serial   atomic.Uint64
	rechecks atomic.Uint64 // how often Recheck was called
	groups   sync.Pool

	mu        sync.Mutex // after it may come budget.mu
	listeners map[interface{ Close() error }]struct{}
	conns     map[*conn]struct{}
	counters  map[*Endpoint]*[countSets]counters
	peers     map[string]*share // what the connections of each hold
	idle      chan struct{}     // closed when down and no connection is left
	stopped   bool
	ends      chan struct{}  // a connection has ended; holds one
	running   sync.WaitGroup // connections, the watch
}

// init resolves the fields.
func (s *Server) init() {
	s.once.Do(func() {
		or := func(v, d, most int64) int64 {
			if v <= 0 {
				v = d
			}
			return min(v, most)
		}
		s.maxChunk = or(s.MaxChunk, DefaultMaxChunk, wire.LargestChunk)
		s.maxInFlight = int(or(int64(s.MaxInFlight), DefaultMaxInFlight, 1<<20))
		s.maxMessage = s.maxChunk + frameSize
		s.maxDecompressed = or(s.MaxDecompressed, DefaultMaxDecompressed, wire.LargestChunk)
		if s.MaxEvent > 0 {
			s.MaxEvent = max(s.MaxEvent, leastMaxEvent)
		}
		s.mem.limit = or(s.Memory, DefaultMemory, 1<<62)
		s.writeTimeout = time.Duration(or(int64(s.WriteTimeout), int64(DefaultWriteTimeout), 1<<62))
		s.watch.init(time.Duration(or(int64(s.StallTimeout), int64(DefaultStallTimeout), 1<<62)))
		s.began = time.Now()
		s.loginTimeout = time.Duration(or(int64(s.HandshakeTimeout), int64(DefaultHandshake), 1<<62))
		if s.now == nil {
			s.now = time.Now
		}
		s.pool.limit, s.pool.used = s.mem.limit, &s.mem.used
		s.inflaters = makeInflaters(s.mem.limit)
		s.group, _ = s.Handler.(GroupHandler)
		if s.group == nil {
			s.async, _ = s.Handler.(AsyncHandler)
		}
		s.ctx, s.cancel = context.WithCancel(context.Background())
		s.stop = make(chan struct{})
		s.idle = make(chan struct{})
		s.listeners = make(map[interface{ Close() error }]struct{})
		s.conns = make(map[*conn]struct{})
		s.ends = make(chan struct{}, 1)
		s.peers = make(map[string]*share)
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
			s.tell(s.countersOf(ep, 0), Trouble{Kind: NotAccepted, Fate: Kept, Sender: &Sender{Endpoint: ep, Addr: l.Addr(), Peer: peerOf(l.Addr())}, Err: err})
			s.giveWay(1) // perhaps it is for them that the system is short of something
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(delay):
			case <-s.stop:
			}
			continue
		}
		delay = 0
		s.makeRoom()
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

func (s *Server) listen(l interface{ Close() error }) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down.Load() {
		_ = l.Close() // nothing was served
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) unlisten(l interface{ Close() error }) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	_ = l.Close() // most often it was closed by drain
}

// start serves one connection in a goroutine of its own.
func (s *Server) start(nc net.Conn, ep *Endpoint, config *tls.Config) {
	c := newConn(s, nc, ep, config)
	s.mu.Lock()
	if s.down.Load() {
		s.leaveLocked(c)
		s.mu.Unlock()
		_ = nc.Close() // came too late
		return
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	s.mu.Unlock()
	c.count.accepted.Add(1)
	if s.Connection != nil {
		s.Connection(c.sender, true)
	}
	go c.serve()
}

// join has a connection share with the others of its peer.
func (s *Server) join(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.hold.peer = s.peers[c.sender.Peer]; c.hold.peer == nil {
		c.hold.peer = new(share)
		s.peers[c.sender.Peer] = c.hold.peer
	}
	c.hold.peer.conns++
}

func (s *Server) leaveLocked(c *conn) {
	if c.hold.peer.conns--; c.hold.peer.conns == 0 {
		delete(s.peers, c.sender.Peer)
	}
}

// ended takes a connection out.
func (s *Server) ended(c *conn) {
	if s.Connection != nil {
		s.Connection(c.sender, false)
	}
	s.mu.Lock()
	delete(s.conns, c)
	s.leaveLocked(c)
	if s.down.Load() && len(s.conns) == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	s.mu.Unlock()
	select {
	case s.ends <- struct{}{}:
	default:
	}
	s.running.Done()
}

// drain stops listening and reading, and returns what is closed when all connections have ended.
func (s *Server) drain() <-chan struct{} {
	s.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.down.Swap(true)
	done := s.idle
	if done == nil || len(s.conns) == 0 {
		if done == nil {
			done = make(chan struct{})
		}
		s.idle = nil
		close(done)
	}
	if first {
		for l := range s.listeners {
			_ = l.Close() // Serve returns, and has no use for the error
		}
		for c := range s.conns {
			c.interrupt()
		}
	}
	return done
}

// Shutdown stops accepting and reading, lets the handlers finish what they were given, writes the
// acks, and closes the connections: a chunk in flight is either stored and acked, or neither
// (docs/forward.md rule 46). Messages of which only a part was read are discarded. If ctx ends
// first, handlers see their ctx done, connections are cut, and Shutdown returns ctx's error without
// waiting for them; Close then waits.
func (s *Server) Shutdown(ctx context.Context) error {
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

// Close cuts all connections, whatever is in flight, and returns when all goroutines have ended,
// which takes as long as the handlers take to see that their ctx is done. It may be called more
// than once, and not by a handler.
func (s *Server) Close() error {
	s.drain()
	s.abort()
	s.running.Wait()
	return nil
}

// abort ends everything at once.
func (s *Server) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.stopped = true
	close(s.stop)
	s.cancel()
	for c := range s.conns {
		c.abort()
	}
	s.pool.close()
}

// tell counts a trouble and hands it on.
func (s *Server) tell(n *counters, t Trouble) {
	n.troubles[t.Kind].Add(1)
	if s.Trouble != nil {
		s.Trouble(t)
	}
}
