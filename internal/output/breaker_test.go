// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

var errBroken = errors.New("broken")

func TestBreakerStates(t *testing.T) {
	for _, tc := range []struct {
		do   string // f: failed, F: failed and nothing else works, p: probe, w: worked
		want string
	}{
		{"FF", ""},
		{"FFF", "open"},
		{"FFFF", "open"},
		{"ffff", ""},
		{"ffF", "open"},
		{"FFwFF", ""},
		{"FFwFFF", "open"},
		{"p", ""},
		{"w", ""},
		{"FFFw", "open closed"},
		{"FFFp", "open half-open"},
		{"FFFpp", "open half-open"},
		{"FFFpF", "open half-open open"},
		{"FFFpf", "open half-open"},
		{"FFFpFpF", "open half-open open half-open open"},
		{"FFFpw", "open half-open closed"},
		{"FFFpwFF", "open half-open closed"},
		{"FFFpwFFF", "open half-open closed open"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			b := newBreaker(&Trip{Breaker: func(e BreakerEvent) {
				got = append(got, e.State.String())
				if (e.State == BreakerOpen) != errors.Is(e.Err, errBroken) || !e.At.Equal(time.Now()) {
					t.Errorf("%+v", e)
				}
			}}, nil, nil)
			for _, c := range tc.do {
				switch c {
				case 'f', 'F':
					b.failed(errBroken, c == 'F', 0)
				case 'p':
					b.probe()
				case 'w':
					b.worked()
				}
			}
			if err := b.close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("%s: %s", tc.do, got)
			}
		})
	}
}

// line is an output that never delivers: the chunks it holds, for the handler.
type line struct {
	mu     sync.Mutex
	chunks []*forward.Chunk
	rounds map[*forward.Chunk]uint64
	log    []string
}

func (l *line) add(tags string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range tags {
		l.chunks = append(l.chunks, &forward.Chunk{Tag: string(c), Entries: []byte("entries"), ID: []byte("id")})
	}
}

func (l *line) next(round uint64) *forward.Chunk {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.chunks {
		if l.rounds[c] < round {
			l.rounds[c] = round
			return c
		}
	}
	return nil
}

func (l *line) back(c *forward.Chunk, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	verdict := "taken"
	if err != nil {
		verdict = "refused"
	} else {
		l.rounds[c] = 1 << 60
	}
	l.log = append(l.log, c.Tag+" "+verdict)
}

func (l *line) logged() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.Join(l.log, ", ")
	l.log = nil
	return s
}

func TestBreakerOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rounds: make(map[*forward.Chunk]uint64)}
		running := 0
		var reports []string
		b := newBreaker(&Trip{
			Failures: 1,
			Report:   func(err error) { reports = append(reports, err.Error()) },
			HandleError: func(err error, c *forward.Chunk) error {
				running++
				defer func() { running-- }()
				if running > 1 || !errors.Is(err, errBroken) {
					t.Errorf("%d, %v", running, err)
				}
				clear(c.Entries) // its own
				clear(c.ID)
				switch c.Tag {
				case "s":
					<-time.After(time.Hour)
				case "r":
					return errors.New("no")
				case "p":
					panic("oh")
				}
				return nil
			},
		}, l.next, l.back)
		steps := []struct{ do, add, want string }{
			{"more", "arb", ""}, // closed: nothing is offered
			{"fail", "", "a taken, r refused, b taken"},
			{"more", "cp", "c taken, p refused"},
			{"more", "", ""},
			{"fail", "", ""}, // open already: no new round
			{"probe", "", ""},
			{"more", "d", ""},
			{"fail", "", "r refused, p refused, d taken"},
			{"more", "s", "s taken"},
			{"work", "e", ""},
			{"more", "", ""},
			{"fail", "", "r refused, p refused, e taken"},
		}
		for i, s := range steps {
			l.add(s.add)
			switch s.do {
			case "more":
				b.more()
			case "fail":
				b.failed(errBroken, true, 0)
			case "probe":
				b.probe()
			case "work":
				b.worked()
			}
			pass(2 * time.Hour)
			if got := l.logged(); got != s.want {
				t.Errorf("%d: %s: %s, not %s", i, s.do, got, s.want)
			}
		}
		for _, c := range l.chunks {
			if string(c.Entries) != "entries" || string(c.ID) != "id" {
				t.Error("the handler had the chunk itself")
			}
		}
		if err := b.close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(reports) != 6 || !strings.Contains(reports[1], "panic: oh") {
			t.Errorf("%q", reports)
		}
		l.add("z")
		b.more()
		b.probe()
		b.failed(errBroken, true, 0)
		synctest.Wait()
		if got := l.logged(); got != "" {
			t.Error(got)
		}
	})
}

// close waits for a slow handler, and not for one that hangs.
func TestBreakerClose(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{rounds: make(map[*forward.Chunk]uint64)}
			l.add("ab")
			b := newBreaker(&Trip{Failures: 1, HandleError: func(error, *forward.Chunk) error {
				if hangs {
					<-time.After(time.Hour)
				}
				<-time.After(time.Second)
				return nil
			}}, l.next, l.back)
			b.failed(errBroken, true, 0)
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := b.close(ctx)
			want := "a taken"
			if hangs {
				want = ""
			}
			if (err != nil) != hangs || hangs && !strings.Contains(err.Error(), "has not returned for 1m0s") {
				t.Error(err)
			}
			pass(2 * time.Hour)
			if got := l.logged(); got != want {
				t.Errorf("hangs %v: %s", hangs, got)
			}
		})
	}
}

// Listeners that hang or panic hold nobody up.
func TestBreakerListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		n := 0
		b := newBreaker(&Trip{Report: func(error) {
			if n++; n == 1 {
				panic("oh")
			}
			<-release
		}}, nil, nil)
		for range 1000 {
			b.report(errBroken)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.close(ctx); !errors.Is(err, errListener) {
			t.Error(err)
		}
		close(release)
		if err := b.close(t.Context()); err != nil {
			t.Error(err)
		}
		if n > 2+maxTold {
			t.Errorf("%d reports kept", n)
		}
	})
}

func TestBreakerStateNames(t *testing.T) {
	if got := fmt.Sprint(BreakerClosed, BreakerOpen, BreakerHalfOpen,
		BreakerState(9)); got != "closed open half-open unknown" {
		t.Error(got)
	}
}

// A matryoshka panics with itself whenever it is looked at, which package fmt gives up on.
type matryoshka struct{}

func (m matryoshka) Error() string { panic(m) }

func TestBreakerHandlerNestedPanics(t *testing.T) {
	for name, handle := range map[string]func(error, *forward.Chunk) error{
		"panics":  func(error, *forward.Chunk) error { panic(matryoshka{}) },
		"returns": func(error, *forward.Chunk) error { return matryoshka{} },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &line{rounds: make(map[*forward.Chunk]uint64)}
			var reports []string
			b := newBreaker(&Trip{
				Failures: 1, HandleError: handle,
				Report: func(err error) { reports = append(reports, err.Error()) },
			}, l.next, l.back)
			l.add("a")
			b.failed(errBroken, true, 0)
			synctest.Wait()
			if got := l.logged(); got != "a refused" {
				t.Errorf("%s: %s", name, got)
			}
			if err := b.close(t.Context()); err != nil {
				t.Error(err)
			}
			if len(reports) != 1 || !strings.Contains(reports[0], "panic with a output.matryoshka") {
				t.Errorf("%s: %q", name, reports)
			}
		})
	}
}
