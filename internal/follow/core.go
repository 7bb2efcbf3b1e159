// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/journal"
)

// errBehind says why an output was closed.
var errBehind = errors.New("it was closed, for it did not finish what it had, and too much waits for it")

// A core is what all parts of a Follower stand on.
type core struct {
	cfg   Config
	start journal.Position // where the cursor stood when the follower was made
	moved atomic.Int64     // since when the output owes something, in nanoseconds since 1970; 0: it does not
	sent  struct{ events, chunks, bytes atomic.Int64 }
	until fence
	inbox inbox
	progress
	due

	takesWhole bool // the output gets no pieces: its token is the position
	toldState  bool // that the state of the cursor is not readable; it is the same until a commit
}

// A fence is how far a follower may come.
type fence struct {
	mu      sync.Mutex       // held while a record is read
	at      journal.Position // no record that ends behind it is taken; 0: there is none
	reached bool             // the next one does
}

// passesLocked says whether a record that ends there may not be taken. With mu held.
func (l *fence) passesLocked(end journal.Position) bool {
	l.reached = l.at != 0 && end > l.at
	return l.reached
}

// again says that records may be read again.
func (l *fence) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reached = false
}

func newCore(c *Config) *core {
	g := &core{cfg: *c}
	if g.cfg.Chunks <= 0 {
		g.cfg.Chunks = 1024
	}
	if g.cfg.Bytes <= 0 {
		g.cfg.Bytes = 4 << 20
	}
	if g.cfg.Piece <= 0 {
		g.cfg.Piece = 4 << 20
	}
	if g.cfg.Passed == nil {
		g.cfg.Passed = func(journal.Position, Counts) {}
	}
	if g.cfg.Failed == nil {
		g.cfg.Failed = func(error, time.Duration) {}
	}
	if g.cfg.Worked == nil {
		g.cfg.Worked = func() {}
	}
	if g.cfg.Report == nil {
		g.cfg.Report = func(error) {}
	}
	g.start, _ = g.cfg.Reader.Committed()
	g.committed = g.start
	g.rewind(g.start)
	return g
}

// progress is where the follower stands: committed ≤ stop ≤ finished ≤ taken.
type progress struct {
	committed journal.Position // the cursor
	stop      journal.Position // up to where the cursor may move
	finished  journal.Position // end of the longest finished prefix
	taken     journal.Position // end of the last record read
	state     []byte           // of stop
	keep      bool             // the state of stop is the one that the cursor has
	learnt    uint64           // what steps call the last record of the finished prefix
}

// rewind says that all is done up to a position, and nothing is known of what comes after it.
func (p *progress) rewind(to journal.Position) {
	p.taken, p.finished, p.stop = to, to, to
	p.state, p.keep = nil, true
}

// due is what the next commit makes good.
type due struct {
	counts  Counts    // up to finished, beyond stop
	passing Counts    // up to stop, beyond committed
	volume  int64     // submitted since the last commit
	since   time.Time // the first of it
	soon    bool      // the next commit is urgent
}

func (c *core) reportBroken(end journal.Position, err error) {
	c.cfg.Report(codes.RecordBroken.Errorf("the record that ends at %v is no chunk: %w; left out", end, err))
}
