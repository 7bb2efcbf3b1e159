// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/needs"
)

// The relay tests have collectors send on to another one, and kill any of them at random moments
// under acked load. At the end each event must be in the last one's files exactly once, each
// sender's events in their order.

// A relay is collectors in front of another one, all with addresses that stay.
type relay struct {
	t      testing.TB
	rand   *rand.Rand
	setups []*setup     // the last one is where all ends
	live   []*collector // the same
	out    string
}

// newRelay starts collectors: fronts of them, which send on to the last.
func newRelay(t testing.TB, r *rand.Rand, fronts int, query string) *relay {
	t.Helper()
	last, out := newSetup(t)
	last.listen = []string{"forward://" + needs.Address()}
	y := &relay{t: t, rand: r, out: out}
	for range fronts {
		s, _ := newSetup(t)
		s.listen = []string{"forward://" + needs.Address()}
		s.to = []string{"on=" + last.listen[0] + "?" + quickly + query}
		y.setups = append(y.setups, s)
	}
	y.setups = append(y.setups, last)
	for _, s := range y.setups {
		y.live = append(y.live, startCollector(t, s))
	}
	return y
}

// addr is where a front listens.
func (y *relay) addr(front int) string {
	return strings.TrimPrefix(y.setups[front].listen[0], "forward://")
}

// kill ends one collector, any of them, and starts it again.
func (y *relay) kill() {
	y.t.Helper()
	i := y.rand.IntN(len(y.live))
	c := y.live[i]
	if c.over() {
		y.t.Fatalf("collector %d ended by itself: %v\n%s", i, c.err, tail(c.log.String(), 4000))
	}
	c.kill()
	c.forget()
	y.live[i] = launch(y.t, y.setups[i])
}

// stop ends them in the order in which the events go.
func (y *relay) stop() {
	y.t.Helper()
	for _, c := range y.live {
		eventually(y.t, "the collector listens", func() bool { return c.over() || c.log.find("listening") != "" })
		c.stop()
	}
}

func TestRelayKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, query string }{{"plain", ""}, {"gzip", "&compress=gzip"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			y := newRelay(t, r, 1, tt.query)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			stop := make(chan struct{})
			senders := make([]*sender, 4)
			var wg sync.WaitGroup
			for i := range senders {
				senders[i] = &sender{
					name: fmt.Sprint("s", i), addr: y.addr(0), tag: fmt.Sprint("kill.", i%2),
					rand: rand.New(rand.NewPCG(r.Uint64(), uint64(i))),
				}
				wg.Go(func() {
					if err := senders[i].run(ctx, stop); err != nil {
						t.Error(err)
					}
				})
			}
			n := kills(t)
			for range n {
				pause(y.live[0], r, 300*time.Millisecond)
				y.kill()
			}
			close(stop)
			wg.Wait()
			var want []string
			for _, s := range senders {
				want = append(want, s.sent...)
			}
			y.wantAll(want)
			figure(t, "%d kills, %d events", n, len(want))
		})
	}
}

// wantAll waits until the last collector has all events, ends all, and looks at what was written.
func (y *relay) wantAll(want []string) {
	y.t.Helper()
	y.arrived(want)
	y.stop()
	lines := readLines(y.t, y.out)
	wantNames(y.t, lines, want...)
	wantOrder(y.t, lines)
}

// arrived waits until the last collector has written all events. If they do not come, it says what
// is missing and which of the collectors put something aside.
func (y *relay) arrived(want []string) {
	y.t.Helper()
	defer func() {
		if !y.t.Failed() {
			return
		}
		for i, s := range y.setups {
			if _, err := os.Stat(filepath.Join(s.data, letters.Dir)); err == nil {
				y.t.Errorf("collector %d has %d dead letters", i, lettersThere(y.t, s.data))
			}
		}
		wantNames(y.t, readLines(y.t, y.out), want...)
	}()
	lines := newCounter(y.out)
	eventually(y.t, "the last events are in the output", func() bool { return lines.count(y.t) >= len(want) })
}

// TestRelayKillTwo has two collectors in front of one. What a sender sends again by the other one
// is recognised at the end, for the chunk keeps its id. The order holds for each way alone.
func TestRelayKillTwo(t *testing.T) {
	t.Parallel()
	r := random(t)
	y := newRelay(t, r, 2, "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var mu sync.Mutex
	var want []string
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			var both [2]*forward.Client
			for j := range both {
				both[j] = &forward.Client{
					Network: "tcp", Address: y.addr(j), MinBackoff: time.Millisecond,
					MaxBackoff: 20 * time.Millisecond,
				}
				defer both[j].Close()
			}
			turn := i
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("c%d-%d", i, k)
				e := named(name)
				chunk := &forward.Chunk{
					Tag: fmt.Sprint("two.", i), ID: forward.NewID(), UniqueID: true,
					Entries: e.append(nil), Events: 1,
				}
				for { // the other one, if this one does not ack at once: it may have taken the chunk all the same
					try, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					err := both[turn%2].Send(try, chunk)
					cancel()
					if err == nil {
						break
					}
					if ctx.Err() != nil {
						t.Error(ctx.Err())
						return
					}
					turn++
				}
				mu.Lock()
				want = append(want, name)
				mu.Unlock()
			}
		})
	}
	n := kills(t)
	for range n {
		pause(y.live[0], r, 300*time.Millisecond)
		y.kill()
	}
	close(stop)
	wg.Wait()
	y.arrived(want)
	y.stop()
	wantNames(t, readLines(t, y.out), want...)
	figure(t, "%d kills, %d events", n, len(want))
}

// TestRelayKeepsWhatItCannotSend: a collector whose next one is away takes all, starts, and hands
// it on later.
func TestRelayKeepsWhatItCannotSend(t *testing.T) {
	t.Parallel()
	last, out := newSetup(t)
	last.listen = []string{"forward://" + needs.Address()}
	s, _ := newSetup(t)
	s.to = []string{last.listen[0] + "?" + quickly, "file://" + filepath.Join(t.TempDir(), "here.jsonl")}
	c := startCollector(t, s)
	lane := c.lane()
	for i, id := range []string{"a", "b", "c"} {
		e := named(fmt.Sprint("k-", i))
		lane.send(packed("t", id, e.append(nil)), id)
	}
	c.says("output broken", last.listen[0])
	end := startCollector(t, last)
	waitLines(t, out, 3)
	c.says("output works again", last.listen[0])
	c.stop()
	end.stop()
	wantNames(t, readLines(t, out), "k-0", "k-1", "k-2")
}
