// SPDX-License-Identifier: Apache-2.0

package test

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
			s, out := newSetup(t)
			s.args = []string{"--ack", tt.ack}
			r := random(t)
			seeds := r.Uint64() // r itself goes to killUnder
			killUnder(t, s, out, r, max(1, kills(t)/tt.divisor),
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
			far, relayed := newSetup(t)
			addr := needs.Address()
			far.listen = []string{"forward://" + addr}
			receiver := startCollector(t, far)
			s, out := newSetup(t)
			hourly := filepath.Join(filepath.Dir(out), "hourly")
			s.to = append(s.to, "file://"+hourly+"/all.{date}.{hour}.jsonl", "forward://"+addr)
			s.args = []string{"--ack", ack}
			r := random(t)
			seeds := r.Uint64()
			n := kills(t) / 5
			if os.Getenv("SPILLWAY_KILLS") != "" {
				n = kills(t)
			}
			killUnder(t, s, out, r, max(1, n), func(ctx context.Context, addr string, stop <-chan struct{}) [][]string {
				return fourSenders(ctx, t, seeds, addr, stop)
			}, hourly, relayed)
			receiver.stop()
		})
	}
}

// fourSenders send until stop is closed, and return what each of them sent.
func fourSenders(ctx context.Context, t *testing.T, seeds uint64, addr string, stop <-chan struct{}) (sent [][]string) {
	senders := make([]*sender, 4)
	var wg sync.WaitGroup
	for i := range senders {
		senders[i] = &sender{
			name: fmt.Sprint("s", i), addr: addr, tag: fmt.Sprint("kill.", i%2),
			rand: rand.New(rand.NewPCG(seeds, uint64(i))),
		}
		wg.Go(func() {
			if err := senders[i].run(ctx, stop); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	broken := 0
	for _, s := range senders {
		sent = append(sent, s.sent)
		broken += s.broken
	}
	t.Logf("%d connections were cut or refused", broken)
	return sent
}

// TestKillClient has this project's own client resend.
func TestKillClient(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	r := random(t)
	killUnder(t, s, out, r, max(1, kills(t)/2),
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
								e := named(fmt.Sprintf("c%d.%d-%d", i, j, len(names)+k))
								entries = e.append(entries)
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
		eventually(t, "all is acked", func() bool {
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
func killUnder(t *testing.T, s *setup, out string, r *rand.Rand, kills int,
	load func(ctx context.Context, addr string, stop <-chan struct{}) [][]string, also ...string,
) {
	addr := needs.Address()
	s.listen = []string{"forward://" + addr}
	checked.build(t)
	begin := time.Now()

	acked := underLoad(t, 15*time.Minute, func(ctx context.Context, stop <-chan struct{}) [][]string {
		return load(ctx, addr, stop)
	})
	var early, polite atomic.Int64
	for range kills {
		var c *collector
		if r.IntN(5) == 0 { // while it starts
			early.Add(1)
			c = launch(t, s)
			pause(c, r, 150*time.Millisecond)
		} else {
			c = startCollector(t, s)
			pause(c, r, 300*time.Millisecond)
		}
		if c.over() {
			t.Fatalf("the collector ended by itself: %v\n%s", c.err, tail(c.log.String(), 4000))
		}
		if r.IntN(5) == 0 { // while it drains, or after
			polite.Add(1)
			c.terminate()
			pause(c, r, 50*time.Millisecond)
		}
		if s.cut != nil {
			s.cut(c)
		}
		c.kill()
		c.forget()
		if s.mend != nil {
			s.mend()
		}
	}

	c := startCollector(t, s)
	want := slices.Concat(acked()...)
	endsWith(c, want, append([]string{out}, also...)...)
	figure(t, "%d kills (%d at the start, %d after SIGTERM), %d events, %.1f s", kills, early.Load(), polite.Load(),
		len(want), time.Since(begin).Seconds())
}

// endsWith stops the collector when the last events are in each of the folders that its outputs
// write to, and wants these names there, once, each sender's in their order.
func endsWith(c *collector, names []string, outs ...string) {
	c.t.Helper()
	for _, out := range outs {
		eventually(c.t, "the last events are in "+out, func() bool {
			return newCounter(out).count(c.t) >= len(names) || c.over()
		})
	}
	c.stop()
	for _, out := range outs {
		lines := readLines(c.t, out)
		wantNames(c.t, lines, names...)
		wantOrder(c.t, lines)
	}
}
