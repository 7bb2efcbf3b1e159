// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// rememberedRoutes lead events through steps that remember others, to files and to a server.
const rememberedRoutes = `
routes:
  - match: throttled
    to: [files, far]
    do:
      - throttle: {events: 3, per: 10s, by: [k], keys: 40, count: left_out}
      - remove: pad
  - match: alike
    to: [files, far]
    do:
      - dedup: {window: 1m, by: [k, tag], keys: 500}
      - tag: "alike.{part}"
  - match: again
    to: [files, far]
    do:
      - remove: [n, pad]
      - dedup: {window: 20s, count: times}
`

// rememberedLast are the last chunks, one a tag, of an event that passes.
func rememberedLast(seed uint64) (last []*forward.Chunk) {
	for _, tag := range []string{"throttled", "alike", "again"} {
		c := &forward.Chunk{Tag: tag, ID: fmt.Appendf(nil, "remembered-%d-%s", seed, tag), UniqueID: true, Events: 1}
		c.Entries = forward.AppendEventTime([]byte{0x92}, 1_800_000_000, 0)
		c.Entries = append(c.Entries, "\x82\xa1k\xa3end\xa4part\xa3end"...)
		last = append(last, c)
	}
	return last
}

// A rememberer is a collector with these routes, and one behind it.
type rememberer struct {
	s        *rig.Setup
	receiver *rig.Collector
	client   *forward.Client
	folders  []string // with what files and server have got
}

func newRememberer(t *testing.T, ack string) *rememberer {
	t.Helper()
	far, relayed := rig.NewSetup(t)
	s, out := rig.NewSetup(t)
	s.Listen, far.Listen = []string{"forward://" + needs.Address()}, []string{"forward://" + needs.Address()}
	config := filepath.Join(filepath.Dir(out), "spillway.yaml")
	text := fmt.Sprintf("outputs: {files: %q, far: %q}\n%s", s.To[0], far.Listen[0], rememberedRoutes)
	rig.Must(t, os.WriteFile(config, []byte(text), 0o600))
	s.To, s.Args = nil, []string{"--ack", ack, "-c", config}
	addr := strings.TrimPrefix(s.Listen[0], "forward://")
	m := &rememberer{
		s: s, receiver: rig.StartCollector(t, far), folders: []string{out, relayed},
		client: &forward.Client{Address: addr, MinBackoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond},
	}
	t.Cleanup(func() { m.client.Close() })
	return m
}

// ends waits until the last events are in all files.
func (m *rememberer) ends(t *testing.T, c *rig.Collector) {
	t.Helper()
	for _, folder := range m.folders {
		for _, name := range []string{"throttled", "alike.end", "again"} {
			rig.Eventually(t, "the last event is in "+name, func() bool {
				b, _ := os.ReadFile(filepath.Join(folder, name+".jsonl"))
				return bytes.Contains(b, []byte(`"end"`)) || c.Over()
			})
		}
	}
	c.Stop()
	m.receiver.Stop()
}

// TestKillRemembers kills collectors whose steps remember events that have passed. Files and the
// server behind have exactly what they have of one that was not killed.
func TestKillRemembers(t *testing.T) {
	t.Parallel()
	for _, ack := range []string{"synced", "delivered"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			r := rig.Random(t)
			seed := r.Uint64()
			rig.Checked.Build(t)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Minute,
				errors.New("the kill test takes too long"))
			defer cancel()
			killed := newRememberer(t, ack)
			stop, sent := make(chan struct{}), make(chan int)
			go func() {
				n := 0
				for running := true; running; {
					select {
					case <-stop:
						running = false
					default:
						var chunks []*forward.Chunk
						for range 8 {
							chunks = append(chunks, rig.StepsChunk(seed, n))
							n++
						}
						if err := rig.SendAll(ctx, killed.client, chunks...); err != nil {
							t.Error(err)
							running = false
						}
					}
				}
				sent <- n
			}()
			rounds := max(2, rig.Kills(t)/2)
			for range rounds {
				c := rig.StartCollector(t, killed.s)
				// The cursor moves each second.
				rig.Pause(c, r, []time.Duration{100, 400, 1500}[r.IntN(3)]*time.Millisecond)
				if r.IntN(4) == 0 {
					c.Terminate()
					rig.Pause(c, r, 100*time.Millisecond)
				}
				c.Kill()
				c.Forget()
			}
			c := rig.StartCollector(t, killed.s)
			close(stop)
			n := <-sent
			rig.Must(t, rig.SendAll(ctx, killed.client, rememberedLast(seed)...))
			killed.ends(t, c)

			whole := newRememberer(t, ack)
			c = rig.StartCollector(t, whole.s)
			for i := 0; i < n; i += 8 {
				var chunks []*forward.Chunk
				for k := i; k < i+8; k++ {
					chunks = append(chunks, rig.StepsChunk(seed, k))
				}
				rig.Must(t, rig.SendAll(ctx, whole.client, chunks...))
			}
			rig.Must(t, rig.SendAll(ctx, whole.client, rememberedLast(seed)...))
			whole.ends(t, c)

			lines := 0
			for i, folder := range whole.folders {
				paths, err := filepath.Glob(filepath.Join(folder, "*"))
				rig.Must(t, err)
				others, err := filepath.Glob(filepath.Join(killed.folders[i], "*"))
				rig.Must(t, err)
				if len(paths) != 6 || len(others) != 6 {
					t.Errorf("%v and %v", paths, others)
				}
				for _, path := range paths {
					want, err := os.ReadFile(path)
					rig.Must(t, err)
					got, err := os.ReadFile(filepath.Join(killed.folders[i], filepath.Base(path)))
					rig.Must(t, err)
					lines += bytes.Count(want, []byte("\n"))
					if at := unlikeAt(got, want); at >= 0 {
						t.Errorf("%s has %d bytes, want %d; line %d is %s, want %s", path, len(got), len(want),
							1+bytes.Count(want[:at], []byte("\n")), lineAt(got, at), lineAt(want, at))
					}
				}
			}
			rig.Figure(t, "%d kills, %d chunks, %d lines", rounds, n, lines)
		})
	}
}

// unlikeAt is where two texts differ; -1: nowhere.
func unlikeAt(a, b []byte) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

// lineAt is the line with the byte at an index.
func lineAt(text []byte, at int) []byte {
	at = min(at, len(text))
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[from:], []byte("\n"))
	return line
}
