// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A stuck output finishes what its test finishes. Closed, it leaves the rest behind.
type stuck struct {
	mu    sync.Mutex
	has   []held
	bytes int
	now   func(i int) *output.Result // what becomes of a chunk at once; nil: nothing
}

type held struct {
	chunk *forward.Chunk
	was   []int
	done  func(output.Result)
}

func (o *stuck) Submit(c *forward.Chunk, done func(output.Result)) {
	o.mu.Lock()
	i := len(o.has)
	o.has = append(o.has, held{c, numbers(c), done})
	o.bytes += len(c.Entries)
	o.mu.Unlock()
	if o.now == nil {
		return
	}
	if r := o.now(i); r != nil {
		o.has[i].done = nil
		done(*r)
	}
}

func (o *stuck) Flush(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (o *stuck) Close(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("a write hangs: %w", output.ErrLeft)
}

// intact checks that what the output still has is as it was.
func (o *stuck) intact(t *testing.T) {
	t.Helper()
	for i, x := range o.has {
		if x.done != nil && !slices.Equal(numbers(x.chunk), x.was) {
			t.Errorf("chunk %d was %v and is %v", i, x.was, numbers(x.chunk))
		}
	}
}

// letGo finishes all.
func (o *stuck) letGo() {
	for _, x := range o.has {
		if x.done != nil {
			x.done(output.Result{})
		}
	}
}

// looks is a Recent that has nothing, and counts how often it is asked.
func looks(n *atomic.Int64) func(journal.Position) (Recent, bool) {
	return func(journal.Position) (Recent, bool) {
		n.Add(1)
		return Recent{}, false
	}
}

// recents has all chunks in memory, and counts the releases of each.
type recents struct {
	mu       sync.Mutex
	ends     []journal.Position
	chunks   []*forward.Chunk
	released []int
	lent     int
}

func (r *recents) add(p journal.Position, c *forward.Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends, r.chunks, r.released = append(r.ends, p), append(r.chunks, c), append(r.released, 0)
}

func (r *recents) find(after journal.Position) (Recent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.ends, func(p journal.Position) bool { return p > after })
	if i < 0 {
		return Recent{}, false
	}
	r.lent++
	return Recent{r.ends[i], r.chunks[i], lent{r, i}}, true
}

// lent is a chunk that was lent.
type lent struct {
	from *recents
	i    int
}

func (l lent) Release() {
	l.from.mu.Lock()
	defer l.from.mu.Unlock()
	l.from.released[l.i]++
}

func (r *recents) returned() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.released {
		n += k
	}
	return n
}

func opens(o output.Output) func() (output.Output, error) {
	return func() (output.Output, error) { return o, nil }
}

// TestHangs: an output that finishes nothing is named after ten seconds, costs next to nothing
// meanwhile, and does not hold up the end. What it still has is not touched.
func TestHangs(t *testing.T) {
	for name, test := range map[string]struct {
		chunks         int // of the window; the journal has 50
		eager, resumer bool
	}{
		"window full":       {chunks: 10},
		"caught up":         {chunks: 100},
		"caught up, eager":  {chunks: 100, eager: true},
		"state":             {chunks: 100, resumer: true},
		"state, eager":      {chunks: 100, resumer: true, eager: true},
		"state, and window": {chunks: 10, resumer: true},
	} {
		for _, draining := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, draining=%v", name, draining), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := openJournal(t, t.TempDir(), &disk{})
					defer j.Close()
					for i := range 50 {
						appendChunk(t, j, numbered("t", i, 1))
					}
					syncAll(t, j)
					o := &stuck{}
					var out output.Output = o
					if test.resumer {
						out = stuckResumer{o}
					}
					var asked atomic.Int64
					f := New(&Config{
						Reader: openReader(t, j), Open: opens(out), Chunks: test.chunks, Eager: test.eager,
						Recent: looks(&asked),
					})
					ctx, stop := context.WithCancel(t.Context())
					drain, ended := context.WithCancel(t.Context())
					defer ended()
					if draining {
						ended()
					}
					over := make(chan error)
					go func() { over <- f.Run(ctx, drain) }()
					began := time.Now()
					rest(hangsAfter)
					if _, hangs := f.Hangs(); hangs {
						t.Error("it hangs too soon")
					}
					rest(time.Second)
					synctest.Wait()
					if since, hangs := f.Hangs(); !hangs || since.Sub(began) > time.Second {
						t.Errorf("it hangs: %v, since %v", hangs, since.Sub(began))
					}
					if n := len(o.has); n != min(50, test.chunks) {
						t.Errorf("it has %d chunks", n)
					}
					rest(time.Hour)
					if n := asked.Load(); n > 50+3700 {
						t.Errorf("it looked %d times for a chunk", n)
					}
					stop()
					if err := <-over; !errors.Is(err, output.ErrLeft) {
						t.Error(err)
					}
					if _, hangs := f.Hangs(); hangs {
						t.Error("it hangs, though it has ended")
					}
					o.intact(t)
					o.letGo()
				})
			})
		}
	}
}

type stuckResumer struct{ *stuck }

func (stuckResumer) Resume(func([]byte) error, ...[]byte) error { return nil }

// TestFlushHangs: an idle output that does not return from Flush is named, too.
func TestFlushHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		f := New(&Config{Reader: openReader(t, j), Open: opens(&stuck{})})
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- f.Run(ctx, t.Context()) }()
		rest(2*idleFlush + hangsAfter)
		if _, hangs := f.Hangs(); !hangs {
			t.Error("nobody hears of it")
		}
		stop()
		if err := <-over; !errors.Is(err, output.ErrLeft) {
			t.Error(err)
		}
	})
}

// TestLeftBehind: when an output is given up that does not let go of its chunks, nothing of them is
// used again, and recent ones are returned when it does.
func TestLeftBehind(t *testing.T) {
	for _, recent := range []bool{false, true} {
		t.Run(fmt.Sprint("recent=", recent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, t.TempDir(), &disk{})
				defer j.Close()
				var memory recents
				for i := range 100 {
					c := numbered("t", i, 1)
					memory.add(appendChunk(t, j, c), c)
				}
				syncAll(t, j)
				first := &stuck{now: func(i int) *output.Result {
					switch {
					case i < 20:
						return &output.Result{}
					case i == 60:
						return &output.Result{Err: fmt.Errorf("broken: %w", output.ErrReopen)}
					}
					return nil
				}}
				var second []int
				c := &Config{Reader: openReader(t, j)}
				opened := 0
				c.Open = func() (output.Output, error) {
					if opened++; opened == 1 {
						return first, nil
					}
					return taker(func(c *forward.Chunk) { second = append(second, numbers(c)...) }), nil
				}
				if recent {
					c.Recent = memory.find
				}
				drain, ended := context.WithCancel(t.Context())
				ended()
				must(t, New(c).Run(t.Context(), drain))
				if len(second) != 80 || second[0] != 20 {
					t.Errorf("the second output got %v", second)
				}
				first.intact(t)
				left := memory.returned()
				first.letGo()
				if n := memory.returned(); recent && (n != memory.lent || left >= n) {
					t.Errorf("%d of %d were returned, %d before they were let go", n, memory.lent, left)
				}
				for i, n := range memory.released {
					if n > 2 {
						t.Errorf("chunk %d was returned %d times", i, n)
					}
				}
			})
		})
	}
}

// A taker is an output that takes all at once.
type taker func(c *forward.Chunk)

func (o taker) Submit(c *forward.Chunk, done func(output.Result)) {
	o(c)
	done(output.Result{})
}

func (taker) Flush(context.Context) error { return nil }

func (taker) Close(context.Context) error { return nil }

// TestStuckBesideOther: an output that is stuck costs another one over the same journal nothing,
// and has no more chunks than its window, though it may have finished all but one.
func TestStuckBesideOther(t *testing.T) {
	for name, now := range map[string]func(i int) *output.Result{
		"all":       func(int) *output.Result { return nil },
		"the first": func(i int) *output.Result { return map[bool]*output.Result{false: {}}[i == 0] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, t.TempDir(), &disk{})
				defer j.Close()
				const most = 10
				first := &stuck{now: now}
				a := New(&Config{Reader: openReader(t, j), Open: opens(first), Chunks: most})
				other, err := j.Reader("other")
				must(t, err)
				var got atomic.Int64
				b := New(&Config{
					Reader: other, Open: opens(taker(func(c *forward.Chunk) { got.Add(int64(c.Events)) })),
					Chunks: most,
				})
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = a.Run(ctx, t.Context()) })
				running.Go(func() { _ = b.Run(ctx, t.Context()) })
				for i := range 1000 {
					appendChunk(t, j, numbered("t", i, 1))
				}
				syncAll(t, j)
				rest(time.Second)
				synctest.Wait()
				if n := got.Load(); n != 1000 {
					t.Errorf("the other output got %d events", n)
				}
				if n := len(first.has); n != most {
					t.Errorf("the stuck one has %d chunks", n)
				}
				if n := a.flights.room; n > 1<<16 {
					t.Errorf("its follower keeps %d bytes", n)
				}
				stop()
				running.Wait()
			})
		})
	}
}

// TestKeepsLittle: large records that come to all flights in turn leave no large buffers in each.
func TestKeepsLittle(t *testing.T) {
	j := openJournal(t, t.TempDir(), &disk{})
	defer j.Close()
	const most = 1 << 20
	f := New(&Config{Reader: openReader(t, j), Open: opens(output.Discard), Bytes: most})
	must(t, f.Open(t.Context()))
	defer f.Close()
	large := numbered("t", 0, 40_000)
	for i := range 100 {
		for n := range 50 {
			if c := numbered("t", n, 1); n == i%50 {
				appendChunk(t, j, large)
			} else {
				appendChunk(t, j, c)
			}
		}
		syncAll(t, j)
		for range 50 {
			if more, err := f.flow.next(); !more || err != nil {
				t.Fatal(more, err)
			}
		}
		f.flow.collect()
		must(t, f.committer.commit(t.Context()))
		var spare int64
		for _, x := range f.flights.spare {
			spare += x.size()
		}
		if spare != f.flights.room || spare > 3*most {
			t.Fatalf("it keeps %d bytes, and knows of %d", spare, f.flights.room)
		}
	}
}
