// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/urls"
	"github.com/spillwaylog/spillway/journal"
)

// A behindLimit is how far an output may be behind, and what becomes of what goes beyond. It stands
// in the output's URL:
//
//	max_behind=10GiB | max_behind=1h     nothing: what the journal takes
//	when_behind=block                    senders wait: the default
//	when_behind=drop | dead_letter       what has waited longest is given up, a quarter of the limit at once
//
// An output that gives up does so as well when the journal is full and it is the one that holds it.
type behindLimit struct {
	bytes int64
	age   time.Duration
	when  string
	text  string // max_behind as it was written
}

const (
	whenBlock  = "block"
	whenDrop   = "drop"
	whenLetter = "dead_letter"
)

// What an output that keeps up may be behind while its cursor is committed and a disk is slow: less
// would make one lose events that does all it is asked to.
const (
	minBehindBytes = 1 << 20
	minBehindAge   = 10 * time.Second
)

// readLimit reads the parameters of a limit.
func readLimit(u *URL, q *Params) (l behindLimit, err error) {
	l.text = q.String("max_behind", "")
	l.when = q.Choice("when_behind", whenBlock, whenDrop, whenLetter)
	if l.text == "" {
		return l, nil
	}
	if age, bad := time.ParseDuration(l.text); bad == nil && l.text != "0" {
		l.age = age
	} else if l.bytes, bad = urls.ParseSize(l.text); bad != nil {
		return l, u.Errorf("parameter \"max_behind\": %q is neither a size such as 10GiB nor a duration such as 1h",
			l.text)
	}
	if l.age < minBehindAge && l.bytes < minBehindBytes {
		return l, u.Errorf("parameter \"max_behind\": %q is too little for an output that keeps up; at least %d MiB or %v",
			l.text, minBehindBytes>>20, minBehindAge)
	}
	return l, nil
}

// gives says whether the output gives up what has waited too long.
func (l *behindLimit) gives() bool { return l.when == whenDrop || l.when == whenLetter }

// reason is that of the dead letters that given up events become; empty if they are dropped.
func (l *behindLimit) reason() string {
	switch {
	case l.when != whenLetter:
		return ""
	case l.text == "":
		return "the journal was full, and this output held it"
	}
	return "the output was more than " + l.text + " behind"
}

// over says whether more waits for an output behind a position than may. If so it returns what says
// from which position on it is three quarters of that or less.
func (b *backlogs) over(p *pump, at journal.Position) (enough func(journal.Position) bool) {
	l, behind := &p.limit, b.journal.Behind(at)
	within := func(limit int64) func(journal.Position) bool {
		return func(at journal.Position) bool { return b.journal.Behind(at) <= limit-limit/4 }
	}
	switch {
	case l.bytes > 0 && behind > l.bytes:
		return within(l.bytes)
	case l.age > 0 && b.waited(at) > l.age:
		return func(at journal.Position) bool { return b.waited(at) <= l.age-l.age/4 }
	case l.gives() && behind > 0 && b.store.delivered.holds(at) && b.journal.Stats().Full:
		// A disk that another program filled is no reason to give up what is about to be done, nor
		// is a journal that the last run left full.
		if p.failure() != nil || behind >= b.limit/2 && time.Since(b.opened) > minBehindAge {
			return within(behind)
		}
	}
	return nil
}

// waited is how long the record behind a position has waited. The time in which no collector ran
// does not count: an output gets the chance to take what it was left.
func (b *backlogs) waited(at journal.Position) time.Duration {
	now := time.Now()
	return min(b.arrivals.age(now, at), now.Sub(b.opened))
}

// watchEvery is how often it is looked whether senders have to wait for an output.
const watchEvery = 100 * time.Millisecond

// hold makes the store take nothing while an output that does not give up is further behind than it
// may be, until ctx is done. When the journal is full it calls makeRoom.
func (b *backlogs) hold(ctx context.Context, makeRoom func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		limited := slices.DeleteFunc(b.active(),
			func(p *pump) bool { return p.limit.text == "" || p.limit.gives() || p.leaves.Load() })
		var held *heldError
		for _, p := range limited {
			if held == nil && b.over(p, b.store.delivered.passed(p.index)) != nil {
				held = &heldError{output: p.name, limit: p.limit.text}
			}
		}
		b.store.held.Store(held)
		look := tick.C
		if len(limited) == 0 {
			look = nil
		}
		select {
		case <-ctx.Done():
			b.store.held.Store(nil)
			return
		case <-b.store.short:
			makeRoom()
		case <-b.changed:
		case <-look:
		}
	}
}

// tell says of each output once a minute what it has given up, and that it hangs. At the end it
// says what is left to say.
func (b *backlogs) tell(pumps []*pump, last bool) {
	now := time.Now()
	for _, p := range pumps {
		if n := p.dropped.Load() + p.aside.Load(); n > p.told.given &&
			(last || now.Sub(p.told.givenAt) >= remindEvery) {
			h := b.holding(p)
			p.reporter.gaveUp(&given{
				output: p.name, when: p.limit.when, limit: p.limit.text, events: n - p.told.given, all: n,
				backlog: h.backlog,
			})
			p.told.given, p.told.givenAt = n, now
		}
		if last {
			continue
		}
		since, hangs := p.follower.Hangs()
		switch f := p.failing.current(); {
		case hangs && f == nil && now.Sub(p.told.hungAt) >= remindEvery:
			p.tellBroken(Failure{Since: since, Err: follow.ErrHangs})
			p.told.hung, p.told.hungAt = Failure{Since: since}, now
		case !hangs && !p.told.hungAt.IsZero():
			if f == nil {
				p.reporter.recovered(codes.OutputWorks, "output works again", p.told.hung, "output", p.name)
			}
			p.told.hungAt = time.Time{}
		}
	}
}

// gaveUp reports what an output gave up.
func (r *reporter) gaveUp(g *given) {
	code, text := codes.OutputDrops, "output drops events"
	if g.when == whenLetter {
		code, text = codes.OutputLetters, "output makes events dead letters"
	}
	args := []any{
		"output", g.output, "events", g.events, "since_start", g.all, "max_behind",
		cmp.Or(g.limit, "the journal"),
	}
	args = append(args, "behind", g.backlog.events, "behind_bytes", g.backlog.bytes, "behind_for",
		g.backlog.age.Round(time.Second))
	if leftOut, ok := r.take(code); ok {
		code.Error(r.log, text, withLeftOut(leftOut, args...)...)
	}
}

// given is what an output gave up since that was told last.
type given struct {
	output, when, limit string
	events, all         int64 // since then, and since the start
	backlog             backlog
}
