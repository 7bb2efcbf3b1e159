// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// without has a server do to some chunks what ill says, and serve all others.
func without(bad []string, ill func(p *peer, c *forward.Chunk)) func(int, *peer) {
	return func(_ int, p *peer) {
		for {
			c, err := p.next()
			switch {
			case err != nil:
				return
			case slices.Contains(bad, chunkName(c)):
				ill(p, c)
				return
			}
			p.store(c)
			p.ack(c.ID)
		}
	}
}

// A server that refuses some chunks, each in its way, gets all others, and only those are refused.
func TestForwardRefusedChunk(t *testing.T) {
	ways := map[string]func(p *peer, c *forward.Chunk){
		"closes":                func(*peer, *forward.Chunk) {},
		"resets":                func(p *peer, _ *forward.Chunk) { p.Reset() },
		"answers wrongly":       func(p *peer, _ *forward.Chunk) { p.ack([]byte("no")); p.hold() },
		"acks nothing any more": func(p *peer, _ *forward.Chunk) { p.keep() },
		"passes it over":        func(p *peer, _ *forward.Chunk) { p.serve() },
	}
	for name, way := range ways {
		for _, bad := range [][]string{{"1"}, {"7"}, {"7", "8"}, {"3", "8", "9"}} {
			t.Run(fmt.Sprint(name, bad), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newNetwork(1)
					w["a"].script = without(bad, way)
					b := newBench(t, w, nil)
					b.submit(50)
					b.await(50)
					b.close()
					for n := range 50 {
						c := fmt.Sprint(n + 1)
						r := b.results[c][0]
						refused := len(r.Rejected) == 1 && r.Rejected[0].Entry == AllEntries && r.MaybeRepeated
						if r.Err != nil || r.HandedOver || refused != slices.Contains(bad, c) || !refused &&
							!w["a"].stored[c] {
							t.Errorf("chunk %s: %+v", c, r)
						}
					}
				})
			})
		}
	}
}

// A server that takes nothing for long refuses nothing by that, and one chunk that no other follows
// waits.
func TestForwardDoubtNothing(t *testing.T) {
	for name, ill := range ills {
		for _, chunks := range []int{1, 3, 20} {
			t.Run(fmt.Sprint(name, chunks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newNetwork(1)
					began := time.Now()
					w["a"].script = func(_ int, p *peer) {
						if time.Since(began) < time.Hour {
							p.serveSome(0)
							ill(p)
							return
						}
						p.serve()
					}
					b := newBench(t, w, nil)
					b.submit(chunks)
					pass(time.Hour)
					b.await(chunks)
					b.submit(chunks)
					b.await(2 * chunks)
					if n := b.end(); n.given != 1 {
						t.Errorf("%+v", n)
					}
					for c, rs := range b.results {
						if len(rs[0].Rejected) > 0 {
							t.Errorf("chunk %s: %+v", c, rs[0])
						}
					}
				})
			})
		}
	}
}

// With two hosts, of which one refuses a chunk, the other gets it.
func TestForwardRefusedByOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(2)
		bad := []string{"5", "6"}
		w["a"].script = without(bad, func(*peer, *forward.Chunk) {})
		b := newBench(t, w, nil)
		b.submit(60)
		b.await(60)
		if n := b.end(); n.delivered != 60 {
			t.Errorf("%+v", n)
		}
	})
}
