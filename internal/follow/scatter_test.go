// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// A fate is what becomes of a record, whichever run hands it over.
type fate struct {
	end     journal.Position
	first   int // its first event's number; -1: it is no chunk
	refused map[int]bool
	result  output.Result
	counts  Counts
	done    bool // at least once
}

// A scatter is the far side of an output that finishes chunks in any order. It outlives the outputs
// opened to it.
type scatter struct {
	t *testing.T

	dice
	fates   []*fate
	byFirst map[int]int // into fates
	next    int         // fate that the next Submit must be of, if it is of a chunk
	open    *scatterOutput
}

type scatterOutput struct {
	*scatter
	pending map[*time.Timer]func(output.Result)
	closed  bool
}

func (s *scatterOutput) Submit(c *forward.Chunk, done func(output.Result)) {
	all := numbers(c)
	s.mu.Lock()
	i, ok := s.byFirst[all[0]]
	for s.next < len(s.fates) && s.fates[s.next].first < 0 {
		s.next++
	}
	if !ok || i != s.next || s.open != s {
		s.t.Errorf("submitted record %d, want %d", i, s.next)
	}
	s.next = i + 1
	x := s.fates[i]
	at := time.Duration(s.r.IntN(50)) * time.Millisecond
	switch s.r.IntN(20) {
	case 0:
		at = time.Duration(s.r.IntN(3000)) * time.Millisecond
	case 1, 2, 3:
		at = 0
	}
	finish := func() {
		if !slices.Equal(numbers(c), all) {
			s.t.Errorf("record %d has changed before it was done", i)
		}
		s.mu.Lock()
		x.done = true
		s.mu.Unlock()
		done(x.result)
	}
	if at == 0 {
		s.mu.Unlock()
		finish()
		return
	}
	defer s.mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(at, func() {
		s.mu.Lock()
		mine := s.pending[timer] != nil
		delete(s.pending, timer)
		s.mu.Unlock()
		if mine {
			finish()
		}
	})
	s.pending[timer] = done
}

func (s *scatterOutput) Flush(context.Context) error { return nil }

func (s *scatterOutput) Close(context.Context) error {
	s.mu.Lock()
	left := s.pending
	s.pending, s.closed = nil, true
	s.mu.Unlock()
	for timer, done := range left {
		timer.Stop()
		done(output.Result{Err: output.ErrClosed})
	}
	return nil
}

// begin opens an output where the cursor stands.
func (s *scatter) begin(at journal.Position) *scatterOutput {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = 0
	for s.next < len(s.fates) && s.fates[s.next].end <= at {
		s.next++
	}
	s.open = &scatterOutput{scatter: s, pending: map[*time.Timer]func(output.Result){}}
	return s.open
}

// passed checks what was told of the cursor against all records up to there.
func (s *scatter) passed(p journal.Position, told Counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var want Counts
	for i, x := range s.fates {
		if x.end > p {
			break
		}
		if !x.done {
			s.t.Errorf("the cursor is at %v, and record %d, which ends at %v, is not done", p, i, x.end)
		}
		want.add(&x.counts)
	}
	if told != want {
		s.t.Errorf("up to %v it told %+v, want %+v", p, told, want)
	}
}

// record makes a record and its fate.
func (s *scatter) record(first, n int) (data []byte, x *fate) {
	r := s.r
	x = &fate{first: first, refused: map[int]bool{}}
	c := numbered(fmt.Sprint("tag", r.IntN(3)), first, n)
	if r.IntN(4) == 0 {
		c = zipped(c)
	}
	x.counts.Chunks = 1
	switch r.IntN(20) {
	case 0: // no chunk at all
		x.first, x.done = -1, true
		x.counts.Broken = 1
		return []byte("this is no chunk"), x
	case 1: // one that says how many events there would be
		x.first, x.done = -1, true
		x.counts.Broken, x.counts.Unreadable = 1, int64(n)
		c.Compressed, c.Compression = []byte("this is no gzip"), "gzip"
	case 2:
		x.result.HandedOver = true
	case 3, 4, 5, 6:
		for range r.IntN(6) {
			x.result.Rejected = append(x.result.Rejected,
				output.Rejected{Entry: r.IntN(n+3) - 1, Err: fmt.Errorf("bad %d", r.IntN(2))})
		}
	case 7:
		x.result.Rejected = []output.Rejected{{Entry: output.AllEntries}}
	}
	for _, e := range x.result.Rejected {
		for i := range n {
			if e.Entry == i || e.Entry == output.AllEntries {
				x.refused[i] = true
			}
		}
	}
	x.result.MaybeRepeated = r.IntN(10) == 0
	x.result.Soon = r.IntN(100) == 0
	if x.first >= 0 {
		taken := int64(n - len(x.refused))
		x.result.Bytes = 10 * taken
		x.counts.Refused, x.counts.Bytes = int64(len(x.refused)), x.result.Bytes
		if x.counts.Out = taken; x.result.HandedOver {
			x.counts.Out, x.counts.HandedOver = 0, taken
		}
		if x.result.MaybeRepeated {
			x.counts.Repeated = taken
		}
	}
	return slices.Concat(c.AppendHead(nil), c.Body(), c.AppendTail(nil)), x
}

// A letter names one refused entry.
type letter struct {
	end   journal.Position
	entry int
}

// TestScatter follows with an output that finishes chunks in any order, is stopped and begun again,
// while commits and dead letters fail: the cursor passes only what is done, every count is right,
// and every refused entry is a dead letter.
func TestScatter(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails=", fails), func(t *testing.T) {
			t.Parallel()
			seeds(t, 5, 40, func(t *testing.T, r *rand.Rand) {
				synctest.Test(t, func(t *testing.T) { scatters(t, r, fails) })
			})
		})
	}
}

func scatters(t *testing.T, r *rand.Rand, fails bool) {
	s := &scatter{t: t, dice: dice{r: r}, byFirst: map[int]int{}}
	var armed atomic.Bool
	j := openJournal(t, t.TempDir(), &disk{cursor: func() error {
		if armed.Load() && s.random(5) == 0 {
			return errors.New("the cursor's disk is full")
		}
		return nil
	}})
	defer j.Close()
	reader := openReader(t, j)
	armed.Store(fails)
	var appending sync.WaitGroup
	appending.Go(func() {
		for i, first := 0, 0; i < 500; i++ {
			s.mu.Lock()
			n := 1 + r.IntN(5)
			data, x := s.record(first, n)
			var err error
			x.end, err = j.Append(data)
			if x.first >= 0 {
				s.byFirst[first] = len(s.fates)
			}
			s.fates = append(s.fates, x)
			first += n
			wait := r.IntN(4000) - 3900
			s.mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			rest(time.Duration(wait) * time.Millisecond)
		}
		syncAll(t, j)
	})
	letters := map[letter]int{}
	var told Counts
	failing := 0
	for run := 0; ; run++ {
		failing = 0
		f := New(&Config{
			Reader: reader,
			Open:   func() (output.Output, error) { at, _ := reader.Committed(); return s.begin(at), nil },
			Eager:  s.random(2) == 0, Chunks: 1 + s.random(50), Bytes: int64(1 + s.random(1<<12)),
			Refuse: func(_ context.Context, all []Refused) error {
				if fails && s.random(3) == 0 {
					return errors.New("the letter box is full")
				}
				for _, x := range all {
					got := numbers(x.Chunk)
					s.mu.Lock()
					i := slices.IndexFunc(s.fates, func(o *fate) bool { return o.end == x.Position })
					for k, entry := range x.Entries {
						letters[letter{x.Position, entry}]++
						if i < 0 || got[k] != s.fates[i].first+entry || !s.fates[i].refused[entry] {
							t.Errorf("entry %d of the record that ends at %v was refused, as %v", entry, x.Position,
								got)
						}
					}
					if len(got) != len(x.Entries) || x.Chunk.Events != len(got) {
						t.Errorf("a letter of %d entries holds %d", len(x.Entries), len(got))
					}
					s.mu.Unlock()
				}
				return nil
			},
			Passed: func(p journal.Position, n Counts) {
				told.add(&n)
				s.passed(p, told)
				if at, _ := reader.Committed(); at != p {
					t.Errorf("passed %v, and the cursor is at %v", p, at)
				}
			},
			Failed: func(error, time.Duration) { failing++ },
			Worked: func() { failing = 0 },
			Report: func(err error) {
				if !errors.Is(err, forward.ErrMalformed) {
					t.Error(err)
				}
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		drain, ended := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			if err := f.Run(ctx, drain); err != nil {
				t.Error(err)
			}
		}()
		last := run > 20
		if last {
			appending.Wait()
			ended()
			<-over
		} else {
			rest(time.Duration(s.random(3000)) * time.Millisecond)
		}
		stop()
		ended()
		<-over
		reader = openReader(t, j)
		if last {
			break
		}
	}
	if failing > 0 {
		t.Error("it ended, and did not say that it works again")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, _ := reader.Committed(); at != s.fates[len(s.fates)-1].end {
		t.Errorf("the cursor is at %v in the end, want %v", at, s.fates[len(s.fates)-1].end)
	}
	for i, x := range s.fates {
		for entry := range x.refused {
			if n := letters[letter{x.end, entry}]; n < 1 || n > 1 && !fails {
				t.Errorf("entry %d of record %d is a dead letter %d times", entry, i, n)
			}
		}
	}
}
