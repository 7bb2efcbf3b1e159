// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A ledger is the far side of a transactional output: it takes events and a token, or neither, and
// refuses some events for good. It outlives the outputs opened to it.
type ledger struct {
	t *testing.T
	dice

	events []int
	token  []byte
}

// A clerk is an output that writes a ledger.
type clerk struct {
	*ledger
	*disk  // dead: it does nothing any more
	fails  bool
	refuse output.Refuse

	lock   sync.Mutex
	wake   chan struct{}
	queue  []entry
	broken error
	over   chan struct{}
}

type entry struct {
	token    []byte
	chunk    *forward.Chunk
	events   []int
	rejected []output.Rejected
	done     func(output.Result)
}

var errBad = errors.New("not to the ledger's taste")

// isBad says which events a ledger refuses.
func isBad(n int) bool { return n%17 == 3 }

func (l *ledger) open(d *disk, fails bool) *clerk {
	o := &clerk{ledger: l, disk: d, fails: fails, wake: make(chan struct{}, 1), over: make(chan struct{})}
	go o.run()
	return o
}

func (o *clerk) Restore(_ context.Context, refuse output.Refuse) ([]byte, bool, error) {
	o.refuse = refuse
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.token), o.token != nil, nil
}

func (o *clerk) Submit(*forward.Chunk, func(output.Result)) { o.t.Error("submitted without a token") }

func (o *clerk) SubmitAt(token []byte, c *forward.Chunk, done func(output.Result)) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.broken != nil {
		go done(output.Result{Err: o.broken})
		return
	}
	e := entry{token: slices.Clone(token), chunk: c, done: done}
	for i, n := range numbers(c) {
		if isBad(n) {
			e.rejected = append(e.rejected, output.Rejected{Entry: i, Err: errBad})
		} else {
			e.events = append(e.events, n)
		}
	}
	o.queue = append(o.queue, e)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run makes transactions.
func (o *clerk) run() {
	defer close(o.over)
	for {
		o.lock.Lock()
		if o.broken != nil {
			o.lock.Unlock()
			return
		}
		batch := slices.Clone(o.queue[:min(len(o.queue), 1+o.random(8))])
		o.queue = o.queue[len(batch):]
		o.lock.Unlock()
		if len(batch) == 0 {
			<-o.wake
			continue
		}
		rest(time.Duration(o.random(100)) * time.Millisecond)
		committed := o.commit(batch)
		rest(time.Duration(o.random(100)) * time.Millisecond) // the answer is on its way
		if o.dead.Load() {
			return
		}
		var err error
		if !committed || o.fails && o.random(10) == 0 {
			err = fmt.Errorf("no answer: %w", output.ErrReopen)
			o.end(err)
		}
		for _, e := range batch {
			e.done(output.Result{Err: err, Rejected: e.rejected})
		}
	}
}

func (o *clerk) commit(batch []entry) bool {
	for _, e := range batch {
		if len(e.rejected) > 0 && o.refuse(context.Background(), e.token, e.chunk, e.rejected) != nil {
			return false
		}
	}
	rest(time.Duration(o.random(50)) * time.Millisecond)
	if o.dead.Load() || o.fails && o.random(20) == 0 {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range batch {
		o.events = append(o.events, e.events...)
		o.token = e.token
	}
	return true
}

// end gives up what is queued.
func (o *clerk) end(err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.broken = err
	for _, e := range o.queue {
		e.done(output.Result{Err: err})
	}
	o.queue = nil
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *clerk) Flush(context.Context) error { return nil }

func (o *clerk) Close(context.Context) error {
	o.end(output.ErrClosed)
	<-o.over
	return nil
}

// TestLedger follows with an output that keeps the position itself, is killed, and fails without
// saying what it has done: each event is there once, in order, or a dead letter, and all are
// counted.
func TestLedger(t *testing.T) {
	seeds(t, 10, 100, func(t *testing.T, r *rand.Rand) {
		synctest.Test(t, func(t *testing.T) { books(t, r) })
	})
}

func books(t *testing.T, r *rand.Rand) {
	l := &ledger{t: t, dice: dice{r: r}}
	dir := t.TempDir()
	j := openJournal(t, dir, &disk{})
	var want []int
	letters := map[int]journal.Position{} // by event
	var mu sync.Mutex
	upTo := map[journal.Position]int64{}
	for range 200 {
		c := numbered("t", len(want), 1+r.IntN(5))
		want = append(want, numbers(c)...)
		upTo[appendChunk(t, j, c)] = int64(len(want))
	}
	must(t, j.Close())
	var at journal.Position
	for lives := 0; lives <= 20; lives++ {
		d := &disk{}
		j := openJournal(t, dir, d)
		reader := openReader(t, j)
		start, _ := reader.Committed()
		told := upTo[start]
		f := New(&Config{
			Reader: reader,
			Open:   func() (output.Output, error) { return l.open(d, lives < 20), nil },
			Chunks: 1 + l.random(30),
			Report: func(err error) { t.Error(err) },
			Refuse: func(_ context.Context, refused []Refused) error {
				mu.Lock()
				defer mu.Unlock()
				if d.dead.Load() {
					return errDead
				}
				for _, r := range refused {
					for _, n := range numbers(r.Chunk) {
						if p, there := letters[n]; there && p != r.Position {
							t.Errorf("event %d is a dead letter at %v and at %v", n, p, r.Position)
						}
						letters[n] = r.Position
					}
				}
				return nil
			},
			Passed: func(p journal.Position, n Counts) {
				if told += n.Out + n.Refused; told != upTo[p] {
					t.Errorf("up to %v it told of %d events, want %d", p, told, upTo[p])
				}
			},
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(1+l.random(3000))*time.Millisecond)
		if lives == 20 {
			ctx, stop = t.Context(), func() {}
		}
		drain, ended := context.WithCancel(ctx)
		ended()
		if lives%2 == 0 && lives < 20 { // it is killed: nothing is known of it any more, but what it did
			kill := time.AfterFunc(time.Duration(l.random(2000))*time.Millisecond, func() {
				d.dead.Store(true)
				stop()
			})
			defer kill.Stop()
		}
		if err := f.Run(ctx, drain); err != nil && !d.dead.Load() {
			t.Error(err)
		}
		at, _ = reader.Committed()
		stop()
		_ = j.Close()
	}
	for _, n := range want {
		if _, letter := letters[n]; letter != isBad(n) {
			t.Fatalf("event %d is a dead letter: %v", n, letter)
		}
	}
	all := int64(len(want))
	want = slices.DeleteFunc(want, isBad)
	for i, n := range want {
		if i >= len(l.events) || l.events[i] != n {
			t.Fatalf("the ledger has %d events, want %d; event %d is not there, but %v", len(l.events), len(want), n,
				l.events[i:min(i+1, len(l.events))])
		}
	}
	if len(l.events) != len(want) || upTo[at] != all {
		t.Errorf("%d events, want %d; the cursor ends at %v", len(l.events), len(want), at)
	}
}

// A standing is an output that says where it stands.
type standing struct {
	output.Output
	token []byte
	got   chan int
}

func (s standing) Restore(context.Context, output.Refuse) ([]byte, bool, error) {
	return s.token, s.token != nil, nil
}

func (s standing) SubmitAt(_ []byte, c *forward.Chunk, done func(output.Result)) {
	s.got <- numbers(c)[0]
	done(output.Result{})
}

// TestRestore: a token of this journal is gone on from, any other is an error.
func TestRestore(t *testing.T) {
	j := openJournal(t, t.TempDir(), &disk{})
	defer j.Close()
	var ends []journal.Position
	for i := range 5 {
		ends = append(ends, appendChunk(t, j, numbered("t", i, 1)))
	}
	syncAll(t, j)
	reader := openReader(t, j)
	must(t, reader.SkipTo(ends[1]))
	must(t, reader.Commit(ends[1], nil))
	must(t, reader.Close())
	token := func(p journal.Position) []byte { return binary.BigEndian.AppendUint64(nil, uint64(p)) }
	for name, test := range map[string]struct {
		token  []byte
		first  int    // submitted
		err    string // of Open
		report string
	}{
		"none":        {nil, 2, "", ""},
		"the cursor":  {token(ends[1]), 2, "", ""},
		"ahead":       {token(ends[3]), 4, "", ""},
		"behind":      {token(ends[0]), 2, "", "not repeated"},
		"in between":  {token(ends[2] + 8), 0, "where no record of this journal ends", ""},
		"later":       {token(ends[4] + 64), 0, "the data directory is an older copy", ""},
		"too short":   {token(ends[3])[1:], 0, "a token of 7 bytes", ""},
		"not a token": {[]byte("offset 17 of topic t"), 0, "a token of 20 bytes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var reports []string
			out := standing{output.Discard, test.token, make(chan int, 5)}
			f := New(&Config{
				Reader: openReader(t, j),
				Open:   func() (output.Output, error) { return out, nil },
				Report: func(err error) { reports = append(reports, err.Error()) },
			})
			err := f.Open(t.Context())
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("%v, want %q", err, test.err)
			}
			if got := strings.Join(reports, "; "); (got == "") != (test.report == "") ||
				!strings.Contains(got, test.report) {
				t.Errorf("reported %q, want %q", got, test.report)
			}
			if err == nil {
				more, err := f.flow.next()
				if first := <-out.got; !more || err != nil || first != test.first {
					t.Errorf("%v %v, submitted %d first, want %d", more, err, first, test.first)
				}
			}
			must(t, f.Close())
		})
	}
}

// TestRestoreEnds with ctx, however much lies between cursor and token.
func TestRestoreEnds(t *testing.T) {
	j := openJournal(t, t.TempDir(), &disk{})
	defer j.Close()
	p := appendChunk(t, j, numbered("t", 0, 1))
	syncAll(t, j)
	f := New(&Config{Reader: openReader(t, j), Open: func() (output.Output, error) {
		return standing{output.Discard, binary.BigEndian.AppendUint64(nil, uint64(p)), nil}, nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Open(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, f.Close())
}
