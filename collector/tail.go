// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/step"
)

// A Tail is a look at events as they are stored: as they came, before all routes and steps. It
// holds nothing up. What it has no room or no time for it skips, and counts.
//
//	inputs ──► journal ──► outputs
//	              │ offer: a copy, if there is room
//	              ▼
//	         pieces ──► Next, ten times a second ──► the client
//
// While there is no tail an input pays one atomic load a chunk. While there is one, it copies at
// most tailBytes a tick, and of events that are all of interest not more than the rate asks for.
// Next looks at these for tailWork a tick and leaves the rest for the next one; meanwhile there is
// less room, so that more is skipped.
type Tail struct {
	tails  *tails
	filter *step.Filter
	rate   float64
	tick   *time.Ticker

	mu      sync.Mutex
	coming  pieces
	room    int64 // events that may still be copied until the next tick; of no interest if the filter has a condition
	taken   int64 // events that were, roughly
	skipped int64 // events of chunks that the filter takes

	// Of Next alone.
	going  pieces
	next   int // of its list
	from   int // of its bytes
	tokens float64
	seen   time.Time     // the tick before
	told   time.Time     // when Next returned last what was skipped
	lost   int64         // since then
	owed   time.Duration // by which looks have taken longer than they may
}

// pieces are beginnings of chunks.
type pieces struct {
	bytes []byte
	list  []piece
	tags  int // bytes of them
}

type piece struct {
	input, tag string
	end        int // in bytes
	events     int // of the chunk
}

// Bounds of what a Tail costs.
const (
	maxTails   = 4
	tailTick   = 100 * time.Millisecond
	tailBytes  = 1 << 20 // of events in hand, twice: so many are copied a tick
	tailWork   = time.Millisecond
	tailGlance = 4 << 10     // bytes of events between two looks at the clock, and 16 events
	tailTell   = time.Second // between two counts of what is skipped

	pieceBytes = 64 // what a piece takes besides its bytes, roughly
)

// TailRate is the rate of TailOptions without one.
const TailRate = 1000

// MaxTailRate is the highest.
const MaxTailRate = 10_000

// TailOptions says which events a Tail shows. The zero value shows all.
type TailOptions struct {
	Tag   string // pattern of tags, as of Route.Match
	Where string // condition, as of Step.Keep
	Rate  int    // events a second that are shown at most; TailRate
}

// A TailError is what is wrong with the options of a Tail, and where.
type TailError = step.FilterError

// ErrTails says that as many look as there may be.
var ErrTails = fmt.Errorf("collector: %d tails are open already", maxTails)

// CheckTail says what is wrong with options, without a collector; expressions are as in Config. The
// error is a *TailError.
func CheckTail(o *TailOptions, expressions func(text string) (*Expression, error)) error {
	_, _, err := o.read(expressions)
	return err
}

func (o *TailOptions) read(expressions func(text string) (*Expression, error)) (f *step.Filter, rate int, err error) {
	if f, err = step.ReadFilter(o.Tag, o.Where, expressions); err != nil {
		return nil, 0, err
	}
	if rate = cmp.Or(o.Rate, TailRate); rate < 1 || rate > MaxTailRate {
		return nil, 0, &TailError{Of: "rate", At: -1, Text: fmt.Sprintf("it is 1 to %d events a second", MaxTailRate)}
	}
	return f, rate, nil
}

// Tail begins to look. Close the tail. The error is a *TailError, or ErrTails.
func (c *Collector) Tail(o *TailOptions) (*Tail, error) {
	filter, rate, err := o.read(c.config.Expressions)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	t := &Tail{
		tails: &c.store.tails, filter: filter, rate: float64(rate), tick: time.NewTicker(tailTick),
		room: int64(rate), tokens: float64(rate), seen: now, told: now,
	}
	if !t.tails.add(t) {
		t.tick.Stop()
		return nil, ErrTails
	}
	return t, nil
}

// Close ends the look. It may be called twice, but not while Next is.
func (t *Tail) Close() {
	t.tails.remove(t)
	t.tick.Stop()
}

// tails are those that look.
type tails struct {
	open atomic.Pointer[[]*Tail] // nil: there is none; written with mu held
	mu   sync.Mutex
}

func (ts *tails) add(t *Tail) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var all []*Tail
	if open := ts.open.Load(); open != nil {
		all = *open
	}
	if len(all) >= maxTails {
		return false
	}
	all = append(slices.Clone(all), t)
	ts.open.Store(&all)
	return true
}

func (ts *tails) remove(t *Tail) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	open := ts.open.Load()
	if open == nil {
		return
	}
	left := slices.DeleteFunc(slices.Clone(*open), func(other *Tail) bool { return other == t })
	if len(left) == 0 {
		ts.open.Store(nil)
		return
	}
	ts.open.Store(&left)
}

// offer shows a chunk that an input has stored to all that look.
func (ts *tails) offer(input string, c *forward.Chunk) {
	if open := ts.open.Load(); open != nil {
		for _, t := range *open {
			t.offer(input, c)
		}
	}
}

// offer takes the beginning of a chunk, as far as there is room. It waits for nothing but others
// that do the same.
func (t *Tail) offer(input string, c *forward.Chunk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Events == 0 || !t.filter.Takes(c.Tag) {
		return
	}
	n := min(len(c.Entries), tailBytes-len(t.coming.bytes)-t.coming.tags-pieceBytes*len(t.coming.list)-len(c.Tag))
	if t.filter.Everything() && int64(c.Events) > t.room { // so much of it as holds these, and one that may be cut
		n = min(n, int(int64(len(c.Entries))*(t.room+1)/int64(c.Events)))
	}
	if n <= 0 || t.filter.Everything() && t.room <= 0 {
		t.skipped += int64(c.Events)
		return
	}
	t.taken += min(int64(c.Events), max(t.room, 0))
	t.room -= int64(c.Events)
	t.coming.bytes = append(t.coming.bytes, c.Entries[:n]...)
	t.coming.list = append(t.coming.list, piece{input, c.Tag, len(t.coming.bytes), c.Events})
	t.coming.tags += len(c.Tag)
}

// Next waits for a tick and calls see for the events that have come and are of interest, those of
// one connection in their order. It returns how many were not looked at or not shown since it said
// so last, which is once a second at most. What see is given is valid during the call. The error is
// that of ctx.
func (t *Tail) Next(ctx context.Context, see func(input, tag string, e *forward.Entry)) (skipped int64, err error) {
	select {
	case <-t.tick.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	now := time.Now()
	t.tokens = min(t.rate, t.tokens+t.rate*now.Sub(t.seen).Seconds())
	t.seen = now
	if t.owed -= tailWork; t.owed < 0 { // else the last look has taken the time of this one
		t.owed = 0
		if t.next == len(t.going.list) {
			t.exchange()
		}
		t.look(now, see)
		t.owed = time.Since(now)
	}
	if t.lost > 0 && now.Sub(t.told) >= tailTell {
		skipped, t.lost, t.told = t.lost, 0, now
	}
	return skipped, nil
}

// exchange takes what has come, and gives room for as much.
func (t *Tail) exchange() {
	clear(t.going.list) // tags
	t.going = pieces{bytes: t.going.bytes[:0], list: t.going.list[:0]}
	t.next, t.from = 0, 0
	t.mu.Lock()
	defer t.mu.Unlock()
	t.coming, t.going = t.going, t.coming
	t.lost += t.skipped
	// What can be shown at the next tick.
	t.room = int64(min(t.rate, t.tokens-float64(t.taken)+t.rate*tailTick.Seconds()))
	t.skipped, t.taken = 0, 0
}

// look shows what is in hand, for as long as a tick may cost.
func (t *Tail) look(began time.Time, see func(input, tag string, e *forward.Entry)) {
	for ; t.next < len(t.going.list); t.next++ {
		p := &t.going.list[t.next]
		entries := forward.ReadEntries(t.going.bytes[t.from:p.end])
		for unseen := 0; ; {
			e, ok := entries.Next()
			if !ok { // the end, or one that is cut
				break
			}
			t.from += len(e.Raw)
			p.events--
			switch {
			case t.tokens < 1 && t.filter.Everything():
				t.lost++
			case !t.filter.Holds(p.tag, e.Raw):
			case t.tokens < 1:
				t.lost++
			default:
				t.tokens--
				see(p.input, p.tag, &e)
			}
			if unseen += max(len(e.Raw), tailGlance/16); unseen < tailGlance {
				continue
			}
			if unseen = 0; time.Since(began) > tailWork {
				return
			}
		}
		t.lost += int64(p.events)
		t.from = p.end
		if time.Since(began) > tailWork {
			t.next++
			return
		}
	}
}
