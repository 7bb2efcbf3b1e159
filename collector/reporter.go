// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// reporter writes the collector's own messages. What hostile or broken peers
// can cause at will is bounded a kind: a burst, then one line a second, which
// says how many were left out.
type reporter struct {
	log *slog.Logger

	mu    sync.Mutex
	kinds map[string]*allowance
	now   func() time.Time
}

const (
	reportBurst = 20
	reportEvery = time.Second
)

// allowance is how many lines of one kind may be written, and how many were
// not.
type allowance struct {
	left    int
	since   time.Time
	leftOut int
}

func newReporter(log *slog.Logger) *reporter {
	return &reporter{log: log, kinds: make(map[string]*allowance), now: time.Now}
}

// take says whether a line of this kind may be written now, and how many were
// left out before it. Kinds are few: they come from this program, not from
// peers.
func (r *reporter) take(kind string) (leftOut int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	a := r.kinds[kind]
	if a == nil {
		a = &allowance{left: reportBurst, since: now}
		r.kinds[kind] = a
	}
	if more := int(now.Sub(a.since) / reportEvery); more > 0 {
		a.left = min(reportBurst, a.left+more)
		a.since = now
	}
	if a.left == 0 {
		a.leftOut++
		return 0, false
	}
	a.left--
	leftOut, a.leftOut = a.leftOut, 0
	return leftOut, true
}

// trouble reports something wrong on this side.
func (r *reporter) trouble(kind string, err error) {
	if leftOut, ok := r.take(kind); ok {
		r.log.Error(kind, withLeftOut(leftOut, "error", err)...)
	}
}

// peer reports bad input.
func (r *reporter) peer(t forward.Trouble) {
	if leftOut, ok := r.take("peer " + t.Kind.String()); ok {
		r.log.Warn("bad input", withLeftOut(leftOut,
			"peer", t.Peer, "kind", t.Kind.String(), "fate", t.Fate.String(), "error", t.Err)...)
	}
}

func withLeftOut(n int, args ...any) []any {
	if n > 0 {
		args = append(args, "left_out", n)
	}
	return args
}

// run tells now and then of what was left out and not told since.
func (r *reporter) run(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.tellLeftOut()
			return
		case <-tick.C:
			r.tellLeftOut()
		}
	}
}

func (r *reporter) tellLeftOut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, a := range r.kinds {
		if a.leftOut > 0 {
			r.log.Warn("lines left out", "kind", kind, "left_out", a.leftOut)
			a.leftOut = 0
		}
	}
}
