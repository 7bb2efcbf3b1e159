// SPDX-License-Identifier: Apache-2.0

package kill

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
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// The relay tests have collectors send on to another one, and kill any of them at random moments
// under acked load. At the end each event must be in the last one's files exactly once, each
// sender's events in their order.

// A relay is collectors in front of another one, all with addresses that stay.
type relay struct {
	t      testing.TB
	rand   *rand.Rand
	setups []*rig.Setup     // the last one is where all ends
	live   []*rig.Collector // the same
	out    string
}

// newRelay starts collectors: fronts of them, which send on to the last.
func newRelay(t testing.TB, r *rand.Rand, fronts int, query string) *relay {
	t.Helper()
	last, out := rig.NewSetup(t)
	last.Listen = []string{"forward://" + needs.Address()}
	y := &relay{t: t, rand: r, out: out}
	for range fronts {
		s, _ := rig.NewSetup(t)
		s.Listen = []string{"forward://" + needs.Address()}
		s.To = []string{"on=" + last.Listen[0] + "?" + rig.Quickly + query}
		y.setups = append(y.setups, s)
	}
	y.setups = append(y.setups, last)
	for _, s := range y.setups {
		y.live = append(y.live, rig.StartCollector(t, s))
	}
	return y
}

// addr is where a front listens.
func (y *relay) addr(front int) string {
	return strings.TrimPrefix(y.setups[front].Listen[0], "forward://")
}

// kill ends one collector, any of them, and starts it again.
func (y *relay) kill() {
	y.t.Helper()
	i := y.rand.IntN(len(y.live))
	c := y.live[i]
	if c.Over() {
		y.t.Fatalf("collector %d ended by itself: %v\n%s", i, c.Err, rig.Tail(c.Log.String(), 4000))
	}
	c.Kill()
	c.Forget()
	y.live[i] = rig.Launch(y.t, y.setups[i])
}

// stop ends them in the order in which the events go.
func (y *relay) stop() {
	y.t.Helper()
	for _, c := range y.live {
		rig.Eventually(y.t, "the collector listens", func() bool { return c.Over() || c.Log.Find("listening") != "" })
		c.Stop()
	}
}

func TestRelayKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, query string }{{"plain", ""}, {"gzip", "&compress=gzip"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := rig.Random(t)
			y := newRelay(t, r, 1, tt.query)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			stop := make(chan struct{})
			senders := make([]*rig.Sender, 4)
			var wg sync.WaitGroup
			for i := range senders {
				senders[i] = &rig.Sender{
					Name: fmt.Sprint("s", i), Addr: y.addr(0), Tag: fmt.Sprint("kill.", i%2),
					Rand: rand.New(rand.NewPCG(r.Uint64(), uint64(i))),
				}
				wg.Go(func() {
					if err := senders[i].Run(ctx, stop); err != nil {
						t.Error(err)
					}
				})
			}
			n := rig.Kills(t)
			for range n {
				rig.Pause(y.live[0], r, 300*time.Millisecond)
				y.kill()
			}
			close(stop)
			wg.Wait()
			var want []string
			for _, s := range senders {
				want = append(want, s.Sent...)
			}
			y.wantAll(want)
			rig.Figure(t, "%d kills, %d events", n, len(want))
		})
	}
}

// wantAll waits until the last collector has all events, ends all, and looks at what was written.
func (y *relay) wantAll(want []string) {
	y.t.Helper()
	y.arrived(want)
	y.stop()
	lines := rig.ReadLines(y.t, y.out)
	rig.WantNames(y.t, lines, want...)
	rig.WantOrder(y.t, lines)
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
			if _, err := os.Stat(filepath.Join(s.Data, letters.Dir)); err == nil {
				y.t.Errorf("collector %d has %d dead letters", i, lettersThere(y.t, s.Data))
			}
		}
		rig.WantNames(y.t, rig.ReadLines(y.t, y.out), want...)
	}()
	lines := rig.NewCounter(y.out)
	rig.Eventually(y.t, "the last events are in the output", func() bool { return lines.Count(y.t) >= len(want) })
}

// TestRelayKillTwo has two collectors in front of one. What a sender sends again by the other one
// is recognised at the end, for the chunk keeps its id. The order holds for each way alone.
func TestRelayKillTwo(t *testing.T) {
	t.Parallel()
	r := rig.Random(t)
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
				e := rig.Named(name)
				chunk := &forward.Chunk{
					Tag: fmt.Sprint("two.", i), ID: forward.NewID(), UniqueID: true,
					Entries: e.Append(nil), Events: 1,
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
	n := rig.Kills(t)
	for range n {
		rig.Pause(y.live[0], r, 300*time.Millisecond)
		y.kill()
	}
	close(stop)
	wg.Wait()
	y.arrived(want)
	y.stop()
	rig.WantNames(t, rig.ReadLines(t, y.out), want...)
	rig.Figure(t, "%d kills, %d events", n, len(want))
}

// TestRelayKeepsWhatItCannotSend: a collector whose next one is away takes all, starts, and hands
// it on later.
func TestRelayKeepsWhatItCannotSend(t *testing.T) {
	t.Parallel()
	last, out := rig.NewSetup(t)
	last.Listen = []string{"forward://" + needs.Address()}
	s, _ := rig.NewSetup(t)
	s.To = []string{last.Listen[0] + "?" + rig.Quickly, "file://" + filepath.Join(t.TempDir(), "here.jsonl")}
	c := rig.StartCollector(t, s)
	lane := c.Lane()
	for i, id := range []string{"a", "b", "c"} {
		e := rig.Named(fmt.Sprint("k-", i))
		lane.Send(rig.Packed("t", id, e.Append(nil)), id)
	}
	c.Says("output broken", last.Listen[0])
	end := rig.StartCollector(t, last)
	rig.WaitLines(t, out, 3)
	c.Says("output works again", last.Listen[0])
	c.Stop()
	end.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "k-0", "k-1", "k-2")
}
