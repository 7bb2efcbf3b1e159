// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A gate is the far side of an output that is shut at times: then it finishes nothing. It outlives
// the outputs opened to it.
type gate struct {
	t    *testing.T
	most int // records that may be behind

	dice
	records []gateRecord
	byFirst map[int]int // into records
	cursor  int         // records that it has passed
	letters map[int]int // by event
	shut    bool
	open    *gateOutput
	working sync.WaitGroup
}

type gateRecord struct {
	end       journal.Position
	events    []int // nil: it is no chunk
	delivered bool
	given     bool // up, for good
}

type gateOutput struct {
	*gate
	pending []func()
	closing []func()
	closed  bool
}

func (o *gateOutput) Submit(c *forward.Chunk, done func(output.Result)) {
	all := numbers(c)
	o.mu.Lock()
	defer o.mu.Unlock()
	x := &o.records[o.byFirst[all[0]]]
	if x.given || len(all) != len(x.events) {
		o.t.Errorf("events %v come, given up: %t", all, x.given)
	}
	if o.closed {
		go done(output.Result{Err: output.ErrClosed})
		return
	}
	i := o.byFirst[all[0]]
	o.pending = append(o.pending, func() {
		o.mu.Lock()
		o.records[i].delivered = true
		o.mu.Unlock()
		done(output.Result{})
	})
	o.closing = append(o.closing, func() { done(output.Result{Err: output.ErrClosed}) })
	if !o.shut {
		o.working.Go(o.work)
	}
}

// work finishes what is there, unless the gate is shut.
func (o *gateOutput) work() {
	rest(time.Duration(o.random(5)) * time.Millisecond)
	o.mu.Lock()
	if o.shut || o.closed {
		o.mu.Unlock()
		return
	}
	n := len(o.pending)
	if o.r.IntN(4) == 0 {
		n = o.r.IntN(n + 1)
	}
	todo := o.pending[:n]
	o.pending, o.closing = o.pending[n:], o.closing[n:]
	again := len(o.pending) > 0
	o.mu.Unlock()
	for _, done := range todo {
		done()
	}
	if again {
		o.working.Go(o.work)
	}
}

func (o *gateOutput) Flush(context.Context) error { return nil }

func (o *gateOutput) Close(context.Context) error {
	o.mu.Lock()
	left := o.closing
	o.pending, o.closing, o.closed = nil, nil, true
	o.mu.Unlock()
	for _, giveBack := range left {
		giveBack()
	}
	return nil
}

func (g *gate) begin() (output.Output, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut && g.r.IntN(3) == 0 {
		return nil, errors.New("the gate is away")
	}
	g.open = &gateOutput{gate: g}
	return g.open, nil
}

// turn shuts or opens the gate.
func (g *gate) turn(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut = shut; !shut && g.open != nil {
		g.working.Go(g.open.work)
	}
}

// behind counts the records behind a position.
func (g *gate) behind(at journal.Position) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := len(g.records); i > 0 && g.records[i-1].end > at; i-- {
		n++
	}
	return n
}

func (g *gate) over(at journal.Position) func(journal.Position) bool {
	if g.behind(at) <= g.most {
		return nil
	}
	return func(at journal.Position) bool { return g.behind(at) <= g.most-g.most/4 }
}

// passed checks that what is told of a step of the cursor is exactly what lies in it, and all of
// one kind.
func (g *gate) passed(p journal.Position, n Counts) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var events, unreadable int64
	from := g.cursor
	for ; g.cursor < len(g.records) && g.records[g.cursor].end <= p; g.cursor++ {
		if x := &g.records[g.cursor]; x.events == nil {
			unreadable++
		} else {
			events += int64(len(x.events))
		}
	}
	given := n.Dropped + n.Aside
	if n.Out+given != events || n.Broken != unreadable || n.Refused != n.Aside || n.Out > 0 && given > 0 {
		g.t.Errorf("records %d to %d have %d events and %d are no chunks; told: %+v", from, g.cursor, events,
			unreadable, n)
	}
	for i := from; i < g.cursor; i++ {
		x := &g.records[i]
		if x.given = given > 0; !x.given && !x.delivered && x.events != nil {
			g.t.Errorf("events %v were neither delivered nor given up", x.events)
		}
	}
}

func (g *gate) refuse(_ context.Context, all []Refused) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.r.IntN(3) == 0 {
		return errors.New("the letter box is full")
	}
	for i := range all {
		if all[i].Reason != "behind" {
			g.t.Errorf("the reason is %q", all[i].Reason)
		}
		for _, n := range numbers(all[i].Chunk) {
			g.letters[n]++
		}
	}
	return nil
}

// appends makes records until ctx is done. A kill finds each of them whole, or not begun.
func (g *gate) appends(ctx context.Context, j *journal.Journal, life *sync.Mutex, most int) {
	for range most {
		rest(time.Duration(g.random(60)) * time.Millisecond)
		life.Lock()
		if ctx.Err() != nil {
			life.Unlock()
			return
		}
		g.mu.Lock()
		first := 0
		for i := len(g.records); first == 0 && i > 0; i-- {
			if x := g.records[i-1].events; x != nil {
				first = x[len(x)-1] + 1
			}
		}
		c, broken, zip := numbered("t", first, 1+g.r.IntN(5)), g.r.IntN(20) == 0, g.r.IntN(4) == 0
		x := gateRecord{events: numbers(c)}
		g.byFirst[first] = len(g.records)
		g.mu.Unlock()
		var err error
		switch {
		case broken:
			x.events = nil
			x.end, err = j.Append([]byte("this is no chunk"))
		case zip:
			x.end = appendChunk(g.t, j, zipped(c))
		default:
			x.end = appendChunk(g.t, j, c)
		}
		must(g.t, err)
		g.mu.Lock()
		g.records = append(g.records, x) // before the follower may see it
		g.mu.Unlock()
		syncAll(g.t, j)
		life.Unlock()
	}
}

// live follows for a while, and then is killed, stopped, or drained.
func (g *gate) live(dir, reason string, last bool) {
	d := &disk{}
	j := openJournal(g.t, dir, d)
	reader := openReader(g.t, j)
	g.mu.Lock()
	at, _ := reader.Committed()
	for g.cursor = 0; g.cursor < len(g.records) && g.records[g.cursor].end <= at; g.cursor++ {
		x := &g.records[g.cursor]
		// A kill came between the commit and the telling of it.
		x.given = x.given || !x.delivered && x.events != nil
	}
	g.mu.Unlock()
	f := New(&Config{
		Reader: reader, Open: g.begin, Refuse: g.refuse, Passed: g.passed,
		Eager: g.random(2) == 0, Chunks: 1 + g.random(20),
		Behind: &Behind{Over: g.over, Reason: reason},
	})
	ctx, stop := context.WithCancel(g.t.Context())
	drain, ended := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = f.Run(ctx, drain)
	}()
	var life sync.Mutex
	var appending sync.WaitGroup
	if !last {
		appending.Go(func() { g.appends(ctx, j, &life, 120) })
		for range 4 {
			g.turn(g.random(2) == 0)
			rest(time.Duration(g.random(8000)) * time.Millisecond)
		}
	}
	switch {
	case last:
		g.turn(false)
		ended()
		<-over
	case g.random(2) == 0: // shut until it is within its bounds
		appending.Wait()
		g.turn(true)
		for limit := time.Now().Add(time.Hour); g.behind(committed(reader)) > g.most; {
			if time.Now().After(limit) {
				g.t.Errorf("after an hour %d records are behind, of %d that may be", g.behind(committed(reader)),
					g.most)
				break
			}
			rest(100 * time.Millisecond)
		}
	}
	life.Lock() // the kill
	if g.random(3) > 0 {
		d.dead.Store(true)
	}
	stop()
	life.Unlock()
	<-over
	appending.Wait()
	ended()
	if err := j.Close(); err != nil && !d.dead.Load() {
		g.t.Error(err)
	}
}

func committed(r *journal.Reader) journal.Position {
	at, _ := r.Committed()
	return at
}

// TestBehind follows with an output that is shut at times, and is killed: what waits is bounded,
// each event is delivered or given up, what was given up never comes again, and all that the cursor
// passes is counted as one or the other.
func TestBehind(t *testing.T) {
	for _, reason := range []string{"", "behind"} {
		t.Run(fmt.Sprintf("reason=%q", reason), func(t *testing.T) {
			t.Parallel()
			seeds(t, 2, 20, func(t *testing.T, r *rand.Rand) {
				synctest.Test(t, func(t *testing.T) {
					g := &gate{
						t: t, dice: dice{r: r}, most: 8 + r.IntN(60), byFirst: map[int]int{},
						letters: map[int]int{},
					}
					dir := t.TempDir()
					for range 5 {
						g.live(dir, reason, false)
					}
					g.live(dir, reason, true)
					g.working.Wait()
					given := 0
					for i := range g.records {
						x := &g.records[i]
						if x.given {
							given += len(x.events)
						}
						if x.events != nil && !x.given && !x.delivered {
							t.Errorf("events %v are lost", x.events)
						}
						for _, n := range x.events {
							if g.letters[n] == 0 && x.given && reason != "" {
								t.Errorf("event %d was given up, and is no dead letter", n)
							}
						}
					}
					if g.cursor != len(g.records) {
						t.Errorf("the cursor has passed %d of %d records", g.cursor, len(g.records))
					}
					t.Logf("%d records, %d events given up", len(g.records), given)
				})
			})
		})
	}
}
