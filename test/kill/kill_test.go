// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// The kill tests end the collector at random moments under senders that wait for acks. At the end
// each event must be in the output exactly once, each sender's events in their order.

func TestKill(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ack     string
		divisor int // of the number of kills
	}{
		{"synced", 1},
		{"journaled", 5},
		{"delivered", 5},
	} {
		t.Run(tt.ack, func(t *testing.T) {
			t.Parallel()
			s, out := rig.NewSetup(t)
			s.Args = []string{"--ack", tt.ack}
			r := rig.Random(t)
			seeds := r.Uint64() // r itself goes to killUnder
			killUnder(t, s, out, r, max(1, rig.Kills(t)/tt.divisor),
				func(ctx context.Context, addr string, stop <-chan struct{}) [][]string {
					return fourSenders(ctx, t, seeds, addr, stop)
				})
		})
	}
}

// TestKillOutputs has three outputs at once: files by tag, a file by the hour of the event, and
// another collector. Each event is once in each.
func TestKillOutputs(t *testing.T) {
	t.Parallel()
	for _, ack := range []string{"synced", "journaled", "delivered"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			far, relayed := rig.NewSetup(t)
			addr := needs.Address()
			far.Listen = []string{"forward://" + addr}
			receiver := rig.StartCollector(t, far)
			s, out := rig.NewSetup(t)
			hourly := filepath.Join(filepath.Dir(out), "hourly")
			s.To = append(s.To, "file://"+hourly+"/all.{date}.{hour}.jsonl", "forward://"+addr)
			s.Args = []string{"--ack", ack}
			r := rig.Random(t)
			seeds := r.Uint64()
			n := rig.Kills(t) / 5
			if os.Getenv("SPILLWAY_KILLS") != "" {
				n = rig.Kills(t)
			}
			killUnder(t, s, out, r, max(1, n), func(ctx context.Context, addr string, stop <-chan struct{}) [][]string {
				return fourSenders(ctx, t, seeds, addr, stop)
			}, hourly, relayed)
			receiver.Stop()
		})
	}
}

// fourSenders send until stop is closed, and return what each of them sent.
func fourSenders(ctx context.Context, t *testing.T, seeds uint64, addr string, stop <-chan struct{}) (sent [][]string) {
	senders := make([]*rig.Sender, 4)
	var wg sync.WaitGroup
	for i := range senders {
		senders[i] = &rig.Sender{
			Name: fmt.Sprint("s", i), Addr: addr, Tag: fmt.Sprint("kill.", i%2),
			Rand: rand.New(rand.NewPCG(seeds, uint64(i))),
		}
		wg.Go(func() {
			if err := senders[i].Run(ctx, stop); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	broken := 0
	for _, s := range senders {
		sent = append(sent, s.Sent)
		broken += s.Broken
	}
	t.Logf("%d connections were cut or refused", broken)
	return sent
}

// TestKillClient has this project's own client resend.
func TestKillClient(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	r := rig.Random(t)
	killUnder(t, s, out, r, max(1, rig.Kills(t)/2),
		func(ctx context.Context, addr string, stop <-chan struct{}) [][]string {
			const clients, together = 2, 4
			var mu sync.Mutex
			var sent [][]string
			var wg sync.WaitGroup
			for i := range clients {
				client := &forward.Client{Network: "tcp", Address: addr}
				defer client.Close()
				for j := range together {
					wg.Go(func() {
						var names []string
						for running := true; running; {
							select {
							case <-stop:
								running = false
								continue
							default:
							}
							var entries []byte
							for k := range 10 {
								e := rig.Named(fmt.Sprintf("c%d.%d-%d", i, j, len(names)+k))
								entries = e.Append(entries)
							}
							for range 10 {
								names = append(names, fmt.Sprintf("c%d.%d-%d", i, j, len(names)))
							}
							chunk := &forward.Chunk{
								Tag: "kill.client", ID: forward.NewID(), UniqueID: true,
								Entries: entries,
								Events:  10,
							}
							if err := client.Send(ctx, chunk); err != nil {
								t.Errorf("Send: %v", err)
								return
							}
						}
						mu.Lock()
						defer mu.Unlock()
						sent = append(sent, names)
					})
				}
			}
			wg.Wait()
			return sent
		})
}

// underLoad begins a load, which returns the names that each of its senders sent. The function that
// it returns ends it, and waits until all is acked. After limit it is over.
func underLoad(t *testing.T, limit time.Duration, load func(ctx context.Context, stop <-chan struct{}) [][]string) (
	acked func() [][]string,
) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("the kill test takes too long"))
	stop, finished := make(chan struct{}), make(chan struct{})
	stopped := sync.OnceFunc(func() { close(stop) })
	var sent [][]string
	go func() {
		defer close(finished)
		sent = load(ctx, stop)
	}()
	t.Cleanup(func() {
		stopped()
		cancel()
		<-finished
	})
	return func() [][]string {
		stopped()
		rig.Eventually(t, "all is acked", func() bool {
			select {
			case <-finished:
				return true
			default:
				return false
			}
		})
		return sent
	}
}

// killUnder kills and restarts the collector while load runs, and checks what it wrote. load
// returns the names that each of its senders sent, all of them acked. also are folders of other
// outputs.
func killUnder(t *testing.T, s *rig.Setup, out string, r *rand.Rand, kills int,
	load func(ctx context.Context, addr string, stop <-chan struct{}) [][]string, also ...string,
) {
	addr := needs.Address()
	s.Listen = []string{"forward://" + addr}
	rig.Checked.Build(t)
	begin := time.Now()

	acked := underLoad(t, 15*time.Minute, func(ctx context.Context, stop <-chan struct{}) [][]string {
		return load(ctx, addr, stop)
	})
	var early, polite atomic.Int64
	for range kills {
		var c *rig.Collector
		if r.IntN(5) == 0 { // while it starts
			early.Add(1)
			c = rig.Launch(t, s)
			rig.Pause(c, r, 150*time.Millisecond)
		} else {
			c = rig.StartCollector(t, s)
			rig.Pause(c, r, 300*time.Millisecond)
		}
		if c.Over() {
			t.Fatalf("the collector ended by itself: %v\n%s", c.Err, rig.Tail(c.Log.String(), 4000))
		}
		if r.IntN(5) == 0 { // while it drains, or after
			polite.Add(1)
			c.Terminate()
			rig.Pause(c, r, 50*time.Millisecond)
		}
		if s.Cut != nil {
			s.Cut(c)
		}
		c.Kill()
		c.Forget()
		if s.Mend != nil {
			s.Mend()
		}
	}

	c := rig.StartCollector(t, s)
	want := slices.Concat(acked()...)
	endsWith(c, want, append([]string{out}, also...)...)
	rig.Figure(t, "%d kills (%d at the start, %d after SIGTERM), %d events, %.1f s", kills, early.Load(), polite.Load(),
		len(want), time.Since(begin).Seconds())
}

// endsWith stops the collector when the last events are in each of the folders that its outputs
// write to, and wants these names there, once, each sender's in their order.
func endsWith(c *rig.Collector, names []string, outs ...string) {
	c.T.Helper()
	for _, out := range outs {
		rig.Eventually(c.T, "the last events are in "+out, func() bool {
			return rig.NewCounter(out).Count(c.T) >= len(names) || c.Over()
		})
	}
	c.Stop()
	for _, out := range outs {
		lines := rig.ReadLines(c.T, out)
		rig.WantNames(c.T, lines, names...)
		rig.WantOrder(c.T, lines)
	}
}
