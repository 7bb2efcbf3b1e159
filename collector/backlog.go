// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/journal"
)

// A backlog is what an output has yet to confirm.
type backlog struct {
	events int64
	bytes  int64         // of the journal
	age    time.Duration // of the oldest event, since it arrived
}

// backlogs measures them.
type backlogs struct {
	journal  *journal.Journal
	start    *startBacklog
	store    *store
	recent   *recent
	arrivals arrivals
	limit    int64     // bytes of the journal
	opened   time.Time // the collector
	pumps    atomic.Pointer[[]*pump]
	changed  chan struct{} // gets something when pumps are others; holds one
}

// active are the outputs that have not been removed, or are not done yet.
func (b *backlogs) active() []*pump {
	return slices.DeleteFunc(slices.Clone(*b.pumps.Load()), func(p *pump) bool { return p.follower == nil })
}

// run notes each second where the journal ends, and whether it takes again what it was given, until
// ctx is done.
func (b *backlogs) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		b.arrivals.note(time.Now(), b.journal.Stats().Last, b.store.delivered.kept())
		b.recent.trim()
		if f := b.store.failing.settled(); f != nil {
			b.store.reporter.recovered(codes.JournalWorks, "journal works again", *f)
		}
		b.tell(b.active(), false)
		select {
		case <-ctx.Done():
			b.tell(b.active(), true)
			return
		case <-tick.C:
		}
	}
}

// of returns the backlog of an output: what was found and stored for it, less what it has
// confirmed.
func (b *backlogs) of(p *pump) backlog {
	done := p.done() // first: what is stored meanwhile counts as not confirmed
	stored := b.store.storedOfAll()
	return b.measure(p, b.start.of(p.index)+stored-p.missed(stored)-done)
}

// measure adds to a number of events how many bytes they are, and how old.
func (b *backlogs) measure(p *pump, events int64) backlog {
	if events <= 0 && !b.start.counting() {
		return backlog{}
	}
	at := b.store.delivered.passed(p.index)
	return backlog{events: max(0, events), bytes: b.journal.Behind(at), age: b.arrivals.age(time.Now(), at)}
}

// holding says what waits for an output that fails.
func (b *backlogs) holding(p *pump) holding {
	h := holding{backlog: b.of(p), waits: "no sender"}
	switch at := b.store.delivered.passed(p.index); {
	case b.journal.Stats().Full && b.store.delivered.holds(at):
		h.waits = "all senders: the journal is full"
	case p.eager && !p.leaves.Load():
		h.waits = "acks: they wait for delivery"
	}
	return h
}

// holder names the output for which the journal keeps most, and says how much and how old that is:
// of those that fail, or of all if none does. It is nil if no output is behind.
func (b *backlogs) holder() (said []any) {
	var most int64
	failing := false
	for _, p := range b.active() {
		behind, fails := b.of(p), p.failure() != nil
		if behind.events > 0 && (fails && !failing || fails == failing && behind.bytes > most) {
			most, failing = behind.bytes, fails
			said = []any{
				"held_by", p.name, "behind", behind.events, "behind_bytes", behind.bytes, "behind_for",
				behind.age.Round(time.Second),
			}
		}
	}
	return said
}
