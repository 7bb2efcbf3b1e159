// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// shared is what the connections of a server share: its limits, resolved, and what they take of one
// another. Nothing in it knows which connections there are.
type shared struct {
	limits
	handler   Handler
	group     GroupHandler // nil: handler is no more than that
	async     AsyncHandler // nil: nor that
	aside     func(ctx context.Context, e *LargeEvent) error
	largeTurn func(ctx context.Context) (done func())
	peerError func(PeerError)
	now       func() time.Time
	began     time.Time // of the clock

	mem       *budget.Budget
	watch     budget.Watch
	inflaters chan *wire.Inflaters // those that nobody uses
	groups    sync.Pool            // *work
	hosts     hosts
	counts    counts

	ctx      context.Context // of the handlers
	cancel   context.CancelFunc
	stop     chan struct{}  // closed: no more waiting for memory, connections go at once
	down     atomic.Bool    // no new connections, nothing more is read; written once, with roster.mu held
	rechecks atomic.Uint64  // how often Recheck was called
	running  sync.WaitGroup // connections, their ackers, the watcher
}

// clock is a time that only grows, in nanoseconds, and is never 0.
func (s *shared) clock() int64 { return int64(time.Since(s.began)) + 1 }

// tell counts a PeerError and hands it on.
func (s *shared) tell(n *counters, t PeerError) {
	n.peerErrors[t.Kind].Add(1)
	if s.peerError != nil {
		s.peerError(t)
	}
}
