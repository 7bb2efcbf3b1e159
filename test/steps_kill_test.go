// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
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

// rememberedChunk is one of those that a run is sent, the same each time. Its events have times
// that go on, some of them late, and some of a clock that is wrong.
func rememberedChunk(seed uint64, i int) *forward.Chunk {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	c := &forward.Chunk{
		Tag: []string{"throttled", "alike", "again"}[i%3],
		ID:  fmt.Appendf(nil, "remembered-%d-%d", seed, i), UniqueID: true,
	}
	for range 1 + r.IntN(60) {
		sec := 1_700_000_000 + int64(i)/4 - int64(r.IntN(3))
		if r.IntN(50) == 0 {
			sec += int64(r.IntN(1000)) - 500
		}
		k := r.IntN(30)
		if r.IntN(4) == 0 {
			k = r.IntN(3000)
		}
		c.Entries = forward.AppendEventTime(append(c.Entries, 0x92), sec, uint32(r.IntN(1e9)))
		c.Entries = msgpack.AppendMapHeader(c.Entries, 4)
		c.Entries = msgpack.AppendInt(msgpack.AppendString(c.Entries, "k"), int64(k))
		c.Entries = msgpack.AppendInt(msgpack.AppendString(c.Entries, "n"), int64(c.Events))
		c.Entries = msgpack.AppendInt(msgpack.AppendString(c.Entries, "part"), int64(k%3))
		c.Entries = msgpack.AppendString(msgpack.AppendString(c.Entries, "pad"), strings.Repeat("x", r.IntN(200)))
		c.Events++
	}
	return c
}

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
	s        *setup
	receiver *collector
	client   *forward.Client
	folders  []string // with what files and server have got
}

func newRememberer(t *testing.T, ack string) *rememberer {
	t.Helper()
	far, relayed := newSetup(t)
	s, out := newSetup(t)
	s.listen, far.listen = []string{"forward://" + needs.Address()}, []string{"forward://" + needs.Address()}
	config := filepath.Join(filepath.Dir(out), "spillway.yaml")
	text := fmt.Sprintf("outputs: {files: %q, far: %q}\n%s", s.to[0], far.listen[0], rememberedRoutes)
	must(t, os.WriteFile(config, []byte(text), 0o600))
	s.to, s.args = nil, []string{"--ack", ack, "-c", config}
	addr := strings.TrimPrefix(s.listen[0], "forward://")
	m := &rememberer{
		s: s, receiver: startCollector(t, far), folders: []string{out, relayed},
		client: &forward.Client{Address: addr, MinBackoff: 5 * time.Millisecond, MaxBackoff: 50 * time.Millisecond},
	}
	t.Cleanup(func() { m.client.Close() })
	return m
}

// send sends chunks, and is done when all are acked.
func (m *rememberer) send(ctx context.Context, chunks ...*forward.Chunk) error {
	errs := make(chan error, len(chunks))
	for _, c := range chunks {
		if _, err := m.client.Start(c, func(err error) { errs <- err }); err != nil {
			return err
		}
	}
	var all []error
	for range chunks {
		select {
		case err := <-errs:
			all = append(all, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(all...)
}

// ends waits until the last events are in all files.
func (m *rememberer) ends(t *testing.T, c *collector) {
	t.Helper()
	for _, folder := range m.folders {
		for _, name := range []string{"throttled", "alike.end", "again"} {
			eventually(t, "the last event is in "+name, func() bool {
				b, _ := os.ReadFile(filepath.Join(folder, name+".jsonl"))
				return bytes.Contains(b, []byte(`"end"`)) || c.over()
			})
		}
	}
	c.stop()
	m.receiver.stop()
}

// TestKillRemembers kills collectors whose steps remember events that have passed. Files and the
// server behind have exactly what they have of one that was not killed.
func TestKillRemembers(t *testing.T) {
	t.Parallel()
	for _, ack := range []string{"synced", "delivered"} {
		t.Run(ack, func(t *testing.T) {
			t.Parallel()
			r := random(t)
			seed := r.Uint64()
			checked.build(t)
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
							chunks = append(chunks, rememberedChunk(seed, n))
							n++
						}
						if err := killed.send(ctx, chunks...); err != nil {
							t.Error(err)
							running = false
						}
					}
				}
				sent <- n
			}()
			rounds := max(2, kills(t)/2)
			for range rounds {
				c := startCollector(t, killed.s)
				pause(c, r, []time.Duration{100, 400, 1500}[r.IntN(3)]*time.Millisecond) // the cursor moves each second
				if r.IntN(4) == 0 {
					c.terminate()
					pause(c, r, 100*time.Millisecond)
				}
				c.kill()
				c.forget()
			}
			c := startCollector(t, killed.s)
			close(stop)
			n := <-sent
			must(t, killed.send(ctx, rememberedLast(seed)...))
			killed.ends(t, c)

			whole := newRememberer(t, ack)
			c = startCollector(t, whole.s)
			for i := 0; i < n; i += 8 {
				var chunks []*forward.Chunk
				for k := i; k < i+8; k++ {
					chunks = append(chunks, rememberedChunk(seed, k))
				}
				must(t, whole.send(ctx, chunks...))
			}
			must(t, whole.send(ctx, rememberedLast(seed)...))
			whole.ends(t, c)

			lines := 0
			for i, folder := range whole.folders {
				paths, err := filepath.Glob(filepath.Join(folder, "*"))
				must(t, err)
				others, err := filepath.Glob(filepath.Join(killed.folders[i], "*"))
				must(t, err)
				if len(paths) != 6 || len(others) != 6 {
					t.Errorf("%v and %v", paths, others)
				}
				for _, path := range paths {
					want, err := os.ReadFile(path)
					must(t, err)
					got, err := os.ReadFile(filepath.Join(killed.folders[i], filepath.Base(path)))
					must(t, err)
					lines += bytes.Count(want, []byte("\n"))
					if at := unlikeAt(got, want); at >= 0 {
						t.Errorf("%s has %d bytes, want %d; line %d is %s, want %s", path, len(got), len(want),
							1+bytes.Count(want[:at], []byte("\n")), lineAt(got, at), lineAt(want, at))
					}
				}
			}
			figure(t, "%d kills, %d chunks, %d lines", rounds, n, lines)
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
