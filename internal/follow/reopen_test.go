// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// A keeper is an output with a state, which is the number of its chunks as text. What it does is
// scripted.
type keeper struct {
	resume func(save func([]byte) error, states [][]byte) error
	submit func(c *forward.Chunk) output.Result
	flush  func() error
}

func (o *keeper) Resume(save func([]byte) error, states ...[]byte) error {
	if o.resume == nil {
		return nil
	}
	return o.resume(save, states)
}

func (o *keeper) Submit(c *forward.Chunk, done func(output.Result)) { done(o.submit(c)) }

func (o *keeper) Flush(context.Context) error {
	if o.flush == nil {
		return nil
	}
	return o.flush()
}

func (o *keeper) Close(context.Context) error { return nil }

// runs follows in the background until the test's bubble ends it.
func runs(t *testing.T, f *Follower) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() { over <- f.Run(ctx, context.Background()) }()
	return func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
}

// TestGoesOnAfterErrors: each step fails once in a while, some so that the output must be opened
// again. Each chunk arrives once all the same, and each opening gets the last state.
func TestGoesOnAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		reader := openReader(t, j)
		calls := map[string]int{}
		fail := func(op string) error {
			calls[op]++
			switch fmt.Sprint(op, calls[op]) {
			case "submit7", "flush2":
				return fmt.Errorf("broken for good: %w", output.ErrReopen)
			case "flush1", "flush4", "open2":
				return errors.New("not now")
			}
			return nil
		}
		var durable []string
		open := func() (output.Output, error) {
			if err := fail("open"); err != nil {
				return nil, err
			}
			var pending []string
			return &keeper{
				resume: func(_ func([]byte) error, states [][]byte) error {
					_, want := reader.Committed()
					if got := slices.Concat(states...); len(states) > 1 || string(got) != string(want) ||
						len(durable) > 0 && string(got) != fmt.Sprint(len(durable)) {
						t.Errorf("resumed with %q; the last commit has %q, and there are %d", states, want,
							len(durable))
					}
					return nil
				},
				submit: func(c *forward.Chunk) output.Result {
					if err := fail("submit"); err != nil {
						return output.Result{Err: err}
					}
					pending = append(pending, c.Tag)
					return output.Result{State: fmt.Append(nil, len(durable)+len(pending))}
				},
				flush: func() error {
					if err := fail("flush"); err != nil {
						return err
					}
					durable, pending = append(durable, pending...), nil
					return nil
				},
			}, nil
		}
		fault := 0
		stop := runs(t, New(&Config{
			Reader: reader, Open: open,
			Failed: func(error, time.Duration) { fault++ },
			Worked: func() { fault = 0 },
		}))
		var want []string
		for i := range 20 {
			c := numbered(fmt.Sprint("tag", i), i, 1)
			want = append(want, c.Tag)
			appendChunk(t, j, c)
			rest(300 * time.Millisecond)
		}
		rest(time.Minute)
		stop()
		if !slices.Equal(durable, want) {
			t.Errorf("got %v, want %v", durable, want)
		}
		if calls["open"] != 4 || fault > 0 {
			t.Errorf("opened %d times; %d failures since it worked", calls["open"], fault)
		}
	})
}

// TestReopensLessAndLess: an output that must be opened again each time may keep each time what it
// got. A commit begins anew.
func TestReopensLessAndLess(t *testing.T) {
	for name, broken := range map[string]func(o *keeper, err error){
		"submit": func(o *keeper, err error) {
			o.submit = func(*forward.Chunk) output.Result { return output.Result{Err: err} }
		},
		"flush":  func(o *keeper, err error) { o.flush = func() error { return err } },
		"resume": func(o *keeper, err error) { o.resume = func(func([]byte) error, [][]byte) error { return err } },
		"open":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, t.TempDir(), &disk{})
				defer j.Close()
				const most = 12
				var waits []time.Duration
				worked, sound := 0, 0
				open := func() (output.Output, error) {
					o := &keeper{submit: stateX}
					if (len(waits)+1)%most == 0 && sound == len(waits)/most {
						sound++ // good for one chunk
						submit := o.submit
						o.submit = func(c *forward.Chunk) output.Result {
							if worked < sound {
								return submit(c)
							}
							return output.Result{Err: output.ErrReopen}
						}
						return o, nil
					}
					err := fmt.Errorf("broken: %w", output.ErrReopen)
					if broken == nil {
						return nil, err
					}
					broken(o, err)
					return o, nil
				}
				stop := runs(t, New(&Config{
					Reader: openReader(t, j), Open: open,
					Failed: func(_ error, wait time.Duration) { waits = append(waits, wait) },
					Worked: func() { worked++ },
				}))
				for i := range 3 {
					appendChunk(t, j, numbered("t", i, 1))
					syncAll(t, j)
					rest(10 * time.Minute)
				}
				stop()
				if worked != 3 && worked != 2 || len(waits) < 2*most {
					t.Fatalf("worked %d times; waits %v", worked, waits)
				}
				first, second := waits[:most-1], waits[most-1:2*most-2]
				for _, w := range [][]time.Duration{first, second} {
					if !slices.IsSorted(w) || w[0] != retryPause || w[len(w)-1] != maxReopenPause {
						t.Errorf("waits %v", w)
					}
				}
			})
		})
	}
}

// TestCommitsEachSecond, even if there is always more to take.
func TestCommitsEachSecond(t *testing.T) {
	for _, resumer := range []bool{false, true} {
		t.Run(fmt.Sprint("state=", resumer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, t.TempDir(), &disk{})
				defer j.Close()
				var out output.Output = taker(func(*forward.Chunk) {})
				if resumer {
					out = &keeper{submit: stateX}
				}
				var at []time.Duration
				began := time.Now()
				stop := runs(t, New(&Config{
					Reader: openReader(t, j), Open: opens(out),
					Passed: func(journal.Position, Counts) {
						at = append(at, time.Since(began))
					},
				}))
				for i := range 10_000 {
					appendChunk(t, j, numbered("t", i, 1))
					rest(time.Millisecond)
				}
				synctest.Wait()
				if len(at) < 9 || len(at) > 11 {
					t.Errorf("committed at %v", at)
				}
				stop()
			})
		})
	}
}

// TestEagerCommits as soon as it has caught up, and only then if the output has a state.
func TestEagerCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		passed := make(chan Counts, 10)
		stop := runs(t, New(&Config{
			Reader: openReader(t, j), Eager: true,
			Open: opens(
				&keeper{submit: stateX}),
			Passed: func(_ journal.Position, n Counts) { passed <- n },
		}))
		for i := range 10 {
			appendChunk(t, j, numbered("t", i, 1))
			syncAll(t, j)
			began := time.Now()
			if n := <-passed; n.Out != 1 || time.Since(began) > batchPause {
				t.Errorf("%+v after %v", n, time.Since(began))
			}
		}
		stop()
	})
}

// TestWorksAtRest: an output that could not be opened, and can, works, though there is nothing to
// do.
func TestWorksAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		tries, worked := 0, 0
		stop := runs(t, New(&Config{
			Reader: openReader(t, j),
			Open: func() (output.Output, error) {
				if tries++; tries < 4 {
					return nil, errors.New("its folder is away")
				}
				return output.Discard, nil
			},
			Worked: func() { worked++ },
		}))
		rest(time.Minute)
		synctest.Wait()
		if worked != 1 {
			t.Errorf("it said %d times that it works", worked)
		}
		stop()
	})
}

// TestKeepsNewerState: what an output saves by itself after a commit is its state, also where the
// cursor moves without it.
func TestKeepsNewerState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		reader := openReader(t, j)
		var save func([]byte) error
		out := &keeper{
			resume: func(s func([]byte) error, _ [][]byte) error { save = s; return nil },
			submit: func(*forward.Chunk) output.Result { return output.Result{State: []byte("old")} },
		}
		stop := runs(t, New(&Config{Reader: reader, Open: opens(out)}))
		appendChunk(t, j, numbered("t", 0, 1))
		rest(2 * time.Second)
		synctest.Wait()
		must(t, save([]byte("new")))
		p, err := j.Append([]byte("this is no chunk"))
		must(t, err)
		rest(2 * time.Second)
		if at, state := reader.Committed(); at != p || string(state) != "new" {
			t.Errorf("the cursor is at %v, want %v, and its state is %q", at, p, state)
		}
		stop()
		if err := save([]byte("late")); !errors.Is(err, output.ErrClosed) {
			t.Errorf("an output that was given up has saved: %v", err)
		}
	})
}

// A resultFunc is an output without a state that says at once what becomes of a chunk.
type resultFunc func(c *forward.Chunk) output.Result

func (o resultFunc) Submit(c *forward.Chunk, done func(output.Result)) { done(o(c)) }

func (resultFunc) Flush(context.Context) error { return nil }

func (resultFunc) Close(context.Context) error { return nil }

// TestCommitsBeforeReopening: what an output without a state has done is not given to the next one,
// nor are its dead letters forgotten. They can be read though the output wanted them compressed.
func TestCommitsBeforeReopening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, t.TempDir(), &disk{})
		defer j.Close()
		var got, letters, want []int
		for i := range 12 {
			appendChunk(t, j, zipped(numbered("t", 2*i, 2)))
			want = append(want, 2*i+1)
		}
		syncAll(t, j)
		stop := runs(t, New(&Config{
			Reader: openReader(t, j), Opaque: true,
			Open: func() (output.Output, error) {
				got = append(got, 0)
				return resultFunc(func(*forward.Chunk) output.Result {
					if got[len(got)-1]++; got[len(got)-1] == 5 {
						return output.Result{Err: output.ErrReopen}
					}
					return output.Result{Rejected: []output.Rejected{{Entry: 1}}}
				}), nil
			},
			Refuse: func(_ context.Context, all []Refused) error {
				for i := range all {
					letters = append(letters, numbers(all[i].Chunk)...)
				}
				return nil
			},
		}))
		rest(time.Minute)
		synctest.Wait()
		if !slices.Equal(got, []int{5, 5, 4}) {
			t.Errorf("the outputs got %v chunks", got)
		}
		if !slices.Equal(letters, want) {
			t.Errorf("dead letters %v, want %v", letters, want)
		}
		stop()
	})
}

func stateX(*forward.Chunk) output.Result { return output.Result{State: []byte("x")} }
