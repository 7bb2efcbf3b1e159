// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"time"

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
	found    *found
	store    *store
	recent   *recent
	arrivals arrivals
	most     int64     // bytes of the journal
	opened   time.Time // the collector
}

// run notes each second where the journal ends, and whether it takes again what it was given, until
// ctx is done.
func (b *backlogs) run(ctx context.Context, pumps []*pump) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		b.arrivals.note(time.Now(), b.journal.Stats().Last, b.store.delivered.allPassed())
		b.recent.trim()
		if f := b.store.failing.settled(); f != nil {
			b.store.reporter.recovered("journal works again", *f)
		}
		b.tell(pumps, false)
		select {
		case <-ctx.Done():
			b.tell(pumps, true)
			return
		case <-tick.C:
		}
	}
}

// of returns the backlog of an output: what was found and stored for it, less what it has
// confirmed.
func (b *backlogs) of(p *pump) backlog {
	passed := p.out.Load() + p.filtered.Load() + p.unreadable.Load() + p.refused.Load() + p.dropped.Load() // first: what is stored meanwhile counts as not confirmed
	events := b.found.of(p.index) - passed
	for _, a := range b.store.accounts {
		events += a.stored.events.Load()
	}
	return b.measure(p, events)
}

// measure adds to a number of events how many bytes they are, and how old.
func (b *backlogs) measure(p *pump, events int64) backlog {
	if events <= 0 && !b.found.counting() {
		return backlog{}
	}
	at := b.store.delivered.passed(p.index)
	return backlog{events: max(0, events), bytes: b.journal.Behind(at), age: b.arrivals.age(time.Now(), at)}
}

// holding says what waits for an output that fails.
func (b *backlogs) holding(p *pump) holding {
	h := holding{backlog: b.of(p), waits: "no sender"}
	switch at := b.store.delivered.passed(p.index); {
	case b.journal.Stats().Full && at == b.store.delivered.allPassed():
		h.waits = "all senders: the journal is full"
	case p.eager:
		h.waits = "acks: they wait for delivery"
	}
	return h
}

// holder names the output for which the journal keeps most, and says how much and how old that is:
// of those that fail, or of all if none does. It is nil if no output is behind.
func (b *backlogs) holder(pumps []*pump) (said []any) {
	var most int64
	failing := false
	for _, p := range pumps {
		behind, fails := b.of(p), p.failure() != nil
		if behind.events > 0 && (fails && !failing || fails == failing && behind.bytes > most) {
			most, failing = behind.bytes, fails
			said = []any{"held_by", p.name, "behind", behind.events, "behind_bytes", behind.bytes, "behind_for", behind.age.Round(time.Second)}
		}
	}
	return said
}
