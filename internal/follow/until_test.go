// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// TestUntil: a follower takes nothing behind a place, be it eager or not, goes on when it may, and
// ends there while more is stored.
func TestUntil(t *testing.T) {
	for _, eager := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger(t)
			var mu sync.Mutex
			var got []uint32
			var passed journal.Position
			f := follow.New(&follow.Config{
				Reader: l.reader, Eager: eager,
				Open: func() (output.Output, error) {
					return outputOf(func(c *forward.Chunk, done func(output.Result)) {
						n, err := number(c)
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						got = append(got, n)
						mu.Unlock()
						done(output.Result{})
					}), nil
				},
				Passed: func(p journal.Position, _ follow.Counts) {
					mu.Lock()
					defer mu.Unlock()
					passed = p
				},
			})
			want := func(at journal.Position, numbers ...uint32) {
				t.Helper()
				<-time.After(5 * time.Second) // of the bubble's
				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(got, numbers) || passed != at {
					t.Errorf("eager %v: got %v up to %v, want %v up to %v", eager, got, passed, numbers, at)
				}
			}
			first := l.add(t, record(1, 20_000, false)) // so long that there is padding behind it
			if f.Until(l.Stats().Last); l.Stats().Last == first {
				t.Error("there is no padding")
			}
			second := l.add(t, record(2, 10, false))
			drain, end := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- f.Run(t.Context(), drain) }()
			want(first, 1)
			f.Until(0)
			want(second, 1, 2)
			third := l.add(t, record(3, 10, true))
			want(third, 1, 2, 3)
			f.Until(1)
			l.add(t, record(4, 10, false))
			want(third, 1, 2, 3)
			end()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			want(third, 1, 2, 3)
			_ = l.Close()
		})
	}
}

// TestUntilAgain: what an output fails on after its follower came to the end of what it may take is
// read again.
func TestUntilAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		limit := l.add(t, record(1, 10, false))
		l.add(t, record(2, 10, false))
		var mu sync.Mutex
		var passed journal.Position
		opened := 0
		f := follow.New(&follow.Config{
			Reader: l.reader,
			Open: func() (output.Output, error) {
				mu.Lock()
				defer mu.Unlock()
				opened++
				first := opened == 1
				return outputOf(func(_ *forward.Chunk, done func(output.Result)) {
					if !first {
						done(output.Result{})
						return
					}
					go func() {
						<-time.After(time.Minute) // of the bubble's
						done(output.Result{Err: output.ErrReopen})
					}()
				}), nil
			},
			Passed: func(p journal.Position, _ follow.Counts) {
				mu.Lock()
				defer mu.Unlock()
				passed = p
			},
		})
		f.Until(limit)
		drain, end := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.Run(t.Context(), drain) }()
		<-time.After(5 * time.Minute)
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if passed != limit || opened != 2 {
			t.Errorf("it stands at %v after %d times that it was opened, want %v", passed, opened, limit)
		}
		_ = l.Close()
	})
}
