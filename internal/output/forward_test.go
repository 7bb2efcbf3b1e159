// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// ills is what a server may do to its connections.
var ills = map[string]func(p *peer){
	"closes at once":        func(*peer) {},
	"resets at once":        func(p *peer) { p.Reset() },
	"closes after reading":  func(p *peer) { _, _ = p.next() },
	"stores, then resets":   func(p *peer) { c, _ := p.next(); storeIf(p, c); p.Reset() },
	"dies between chunks":   func(p *peer) { p.serveSome(2) },
	"resets between chunks": func(p *peer) { p.serveSome(3); p.Reset() },
	"reads nothing":         func(p *peer) { p.hold() },
	"stores and never acks": func(p *peer) { p.keep() },
	"acks wrongly":          func(p *peer) { c, _ := p.next(); storeIf(p, c); p.ack([]byte("wrong")); p.hold() },
	"acks the second first": func(p *peer) {
		a, _ := p.next()
		b, _ := p.next()
		storeIf(p, a)
		storeIf(p, b)
		if b != nil {
			p.ack(b.ID)
		}
		p.hold()
	},
	"acks half": func(p *peer) {
		c, _ := p.next()
		storeIf(p, c)
		_,
			_ = p.Write([]byte("\x81\xa3ac"))
	},
	"acks half, and waits": func(p *peer) {
		c, _ := p.next()
		storeIf(p, c)
		_,
			_ = p.Write([]byte("\x81\xa3ac"))
		p.hold()
	},
	"garbage":                    func(p *peer) { _, _ = p.next(); _, _ = p.Write([]byte{0xc1}); p.hold() },
	"answers without being sent": func(p *peer) { p.ack([]byte("unasked")); p.hold() },
	"half closed":                func(p *peer) { p.CloseWrite(); p.hold() },
	"acks late": func(p *peer) {
		for {
			c, err := p.next()
			if err != nil {
				return
			}
			p.store(c)
			<-time.After(15 * time.Second)
			p.ack(c.ID)
		}
	},
}

func storeIf(p *peer, c *forward.Chunk) {
	if c != nil {
		p.store(c)
	}
}

// pass lets time pass, and those act who act then.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// One server that is ill for some connections and then well.
func TestForwardIllServer(t *testing.T) {
	for name, ill := range ills {
		for _, handler := range []string{"", "takes", "refuses"} {
			for _, room := range []int{1 << 20, 50} {
				t.Run(fmt.Sprintf("%s, handler %s, room %d", name, handler, room), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newNetwork(1)
						w["a"].room = room
						w["a"].script = func(n int, p *peer) {
							if n <= 5 {
								ill(p)
								return
							}
							p.serve()
						}
						var b *bench
						b = newBench(t, w, func(c *ForwardConfig) {
							switch handler {
							case "takes":
								c.HandleError = func(err error, ch *forward.Chunk) error { return b.take(err, ch) }
							case "refuses":
								c.HandleError = func(error, *forward.Chunk) error { return errors.New("no") }
							}
						})
						b.submit(10)
						pass(time.Minute)
						b.submit(10)
						b.await(20)
						pass(10 * time.Minute) // a probe must succeed without anything to send
						b.submit(1)
						b.await(21)
						n := b.end()
						if n.given != 1 || handler != "takes" && n.taken != 0 {
							t.Errorf("%+v", n)
						}
					})
				})
			}
		}
	}
}

// The same, given up by Close in the middle: nothing waits for the server.
func TestForwardCloseMeanwhile(t *testing.T) {
	for name, ill := range ills {
		for _, noAck := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, noAck %v", name, noAck), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newNetwork(2)
					for _, s := range w {
						s.room = 50
						s.script = func(_ int, p *peer) { ill(p) }
					}
					b := newBench(t, w, func(c *ForwardConfig) { c.NoAck = noAck })
					b.submit(30)
					pass(time.Duration(rand.N(30_000)) * time.Millisecond)
					start := time.Now()
					b.closed = true
					if err := b.d.Close(t.Context()); err != nil {
						t.Error(err)
					}
					if d := time.Since(start); d != 0 {
						t.Errorf("Close took %v", d)
					}
					if b.done() != 30 {
						t.Errorf("%d done", b.done())
					}
					for _, s := range w {
						s.wg.Wait()
					}
				})
			})
		}
	}
}

func TestForwardBalance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(3)
		b := newBench(t, w, nil)
		b.submit(1)
		pass(time.Second)
		for range 30 {
			b.submit(10)
			pass(100 * time.Millisecond)
		}
		b.await(301)
		for name, s := range w {
			if n := s.count(); n < 99 || n > 102 {
				t.Errorf("%s has %d", name, n)
			}
			inOrder(t, s)
		}
		if n := b.end(); n.delivered != 301 || n.repeated != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// inOrder checks that a server got chunks in their order.
func inOrder(t *testing.T, s *server) {
	t.Helper()
	last := 0
	for _, line := range s.log {
		var n, id int
		if _, err := fmt.Sscanf(line, "%d: id%d", &n, &id); err != nil {
			t.Fatal(err)
		}
		if id < last {
			t.Errorf("%s: %d after %d", s.name, id, last)
		}
		last = id
	}
}

// What was not written to a host that dies goes to another one at once.
func TestForwardOneDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(2)
		w["a"].down = true
		b := newBench(t, w, nil)
		start := time.Now()
		b.submit(40)
		b.await(40)
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %v", d)
		}
		if got := b.told(); got != "" {
			t.Errorf("breaker: %s", got)
		}
		w["a"].start()
		pass(time.Minute)
		b.submit(4) // has a connected to
		pass(time.Minute)
		b.submit(12)
		b.await(56)
		if n := w["a"].count(); n < 6 {
			t.Errorf("the host that is back got %d", n)
		}
		if n := b.end(); n.delivered != 56 || n.repeated != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// What was written to a host stays with it until FailoverAfter.
func TestForwardBound(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newNetwork(2)
			var dead atomic.Bool
			w["a"].script = func(_ int, p *peer) {
				if dead.Load() {
					p.serve()
					return
				}
				c, _ := p.next()
				p.store(c)
				dead.Store(true)
				w["a"].kill()
			}
			w["b"].down = true
			b := newBench(t, w, func(c *ForwardConfig) { c.MaxBackoff = time.Second })
			b.submit(1)
			pass(time.Second)
			w["b"].start()
			b.submit(5)
			pass(5 * time.Second)
			if n := w["b"].count(); n != 5 || b.done() != 5 {
				t.Errorf("b has %d, %d are done", n, b.done())
			}
			if back {
				w["a"].start()
			}
			pass(11 * time.Second)
			if b.done() != 6 {
				t.Errorf("%d done", b.done())
			}
			want := tally{delivered: 6, given: 1, repeated: 1}
			if back {
				want.repeated = 0
			}
			if n := b.end(); n != want {
				t.Errorf("back %v: %+v", back, n)
			}
		})
	}
}

// A host that stalls loses what it has after FailoverAfter, and gets one chunk to show that it
// works again.
func TestForwardStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(2)
		var well atomic.Bool
		w["a"].script = func(_ int, p *peer) {
			if well.Load() {
				p.serve()
				return
			}
			p.hold()
		}
		b := newBench(t, w, nil)
		for range 60 {
			b.submit(5)
			pass(time.Second)
		}
		b.await(300)
		if n := w["a"].attempts(); n > 8 || n < 2 {
			t.Errorf("%d connections to the stalled one", n)
		}
		well.Store(true)
		pass(time.Minute)
		for range 60 {
			b.submit(5)
			pass(time.Second)
		}
		b.await(600)
		if n := w["a"].count(); n < 100 {
			t.Errorf("the host that is well again got %d", n)
		}
		if got := b.told(); got != "" {
			t.Errorf("breaker: %s", got)
		}
		b.end()
	})
}

func TestForwardAllDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(2)
		b := newBench(t, w, nil)
		b.submit(20)
		b.await(20)
		w["a"].kill()
		w["b"].kill()
		b.submit(20)
		pass(time.Minute)
		if got := b.told(); !strings.HasPrefix(got, "open half-open open half-open") ||
			strings.Contains(got, "closed") {
			t.Error(got)
		}
		if n := w["a"].attempts(); n < 5 || n > 20 {
			t.Errorf("%d attempts", n)
		}
		w["b"].start()
		b.await(40)
		synctest.Wait()
		if got := b.told(); !strings.HasSuffix(got, "half-open closed") {
			t.Error(got)
		}
		w["a"].start()
		pass(time.Minute)
		b.submit(2)
		pass(time.Minute)
		before := w["a"].count()
		b.submit(20)
		b.await(62)
		if n := w["a"].count() - before; n < 8 {
			t.Errorf("a is back and got %d", n)
		}
		b.end()
	})
}

// Half-open: one chunk is the probe.
func TestForwardProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(1)
		w["a"].down = true
		b := newBench(t, w, nil)
		b.submit(20)
		pass(5 * time.Second)
		w["a"].script = func(n int, p *peer) {
			c, err := p.next()
			if err != nil {
				return
			}
			<-time.After(5 * time.Second)
			if len(p.in.buf)+len(p.buf) != 0 {
				t.Error("more than one chunk")
			}
			p.store(c)
			p.ack(c.ID)
			p.serve()
		}
		w["a"].start()
		b.await(20)
		if n := b.end(); n.delivered != 20 || n.repeated != 0 {
			t.Errorf("%+v", n)
		}
	})
}

// The handler sees each chunk once when the breaker opens, new ones as they come, and those that it
// refused after the next failed probe.
func TestForwardHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(1)
		w["a"].down = true
		var b *bench
		offers := make(map[string]int)
		refuse := true
		b = newBench(t, w, func(c *ForwardConfig) {
			c.MinBackoff, c.MaxBackoff = 20*time.Second, 20*time.Second
			c.Failures = 2
			c.HandleError = func(err error, c *forward.Chunk) error {
				if err == nil || !strings.Contains(err.Error(), "refused") {
					t.Error(err)
				}
				b.mu.Lock()
				offers[chunkName(c)]++
				no := refuse
				b.mu.Unlock()
				if no {
					return errors.New("not now")
				}
				return b.take(err, c)
			}
		})
		seen := func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			return fmt.Sprint(offers)
		}
		b.submit(3)
		pass(5 * time.Second) // the first attempt failed
		if got := seen(); got != "map[]" {
			t.Error(got)
		}
		for w["a"].attempts() < 2 {
			pass(time.Second)
		}
		b.submit(1)
		synctest.Wait()
		if got := seen(); got != "map[1:1 2:1 3:1 4:1]" {
			t.Error(got)
		}
		if dials := w["a"].attempts(); dials != 2 {
			t.Errorf("%d attempts", dials)
		}
		for w["a"].attempts() < 3 {
			pass(time.Second)
		}
		synctest.Wait()
		if got := seen(); got != "map[1:2 2:2 3:2 4:2]" {
			t.Error(got)
		}
		b.mu.Lock()
		refuse = false
		b.mu.Unlock()
		b.submit(1)
		synctest.Wait()
		if got := fmt.Sprint(seen(), " ", b.done()); got != "map[1:2 2:2 3:2 4:2 5:1] 1" {
			t.Error(got)
		}
		b.await(5)
		if n := b.end(); n.taken != 5 {
			t.Errorf("%+v", n)
		}
	})
}

// A chunk that was written goes to the handler only after FailoverAfter, and is then said to be
// maybe repeated.
func TestForwardHandlerWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(1)
		w["a"].script = func(_ int, p *peer) {
			c, _ := p.next()
			p.store(c)
			w["a"].kill()
		}
		var b *bench
		b = newBench(t, w, func(c *ForwardConfig) {
			c.HandleError = func(err error, c *forward.Chunk) error { return b.take(err, c) }
		})
		b.submit(1)
		synctest.Wait()
		b.submit(3)
		pass(9 * time.Second)
		if n := b.done(); n != 3 {
			t.Errorf("%d done", n)
		}
		b.await(4)
		if n := b.end(); n != (tally{taken: 4, given: 1, repeated: 1}) {
			t.Errorf("%+v", n)
		}
	})
}

// A handler that panics refuses; one that hangs holds nobody up but is named by Close.
func TestForwardHandlerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(1)
		w["a"].down = true
		release := make(chan struct{})
		var b *bench
		var reports []string
		b = newBench(t, w, func(c *ForwardConfig) {
			c.Report = func(err error) { reports = append(reports, err.Error()) }
			c.HandleError = func(_ error, c *forward.Chunk) error {
				switch chunkName(c) {
				case "1":
					panic("oh")
				case "2":
					<-release
				}
				return nil
			}
		})
		b.submit(3)
		pass(5 * time.Second)
		synctest.Wait()
		if got := strings.Join(reports, "\n"); !strings.Contains(got, "panic: oh") {
			t.Error(got)
		}
		w["a"].start()
		pass(time.Minute)
		b.submit(5)
		b.await(7) // all but what the handler has
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := b.d.Close(ctx)
		if err == nil || !strings.Contains(err.Error(), "the error handler has not returned") {
			t.Error(err)
		}
		if r := b.results["2"]; len(r) != 1 || !errors.Is(r[0].Err, ErrClosed) {
			t.Errorf("%v", r)
		}
		close(release)
		synctest.Wait()
		if b.done() != 8 || len(b.results["2"]) != 1 {
			t.Error(b.results)
		}
		for _, s := range w {
			s.wg.Wait()
		}
	})
}

// A Dial that ignores its context is left behind, and named.
func TestForwardDialHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newNetwork(1)
		dials := 0
		b := newBench(t, w, func(c *ForwardConfig) {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				dials++
				<-release
				return nil, errors.New("at last")
			}
		})
		b.submit(3)
		pass(time.Minute)
		synctest.Wait()
		if got := b.told(); !strings.HasPrefix(got, "open") || dials != 1 {
			t.Errorf("%s, %d", got, dials)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.d.Close(ctx); err == nil || !strings.Contains(err.Error(), "ignores its context") ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if b.done() != 3 {
			t.Errorf("%d done", b.done())
		}
		close(release)
	})
}

// A Dial that panics is an attempt that failed; without hosts, or with a compression that is
// unknown, chunks are kept or sent all the same.
func TestForwardOddConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, set := range []func(c *ForwardConfig){
			func(c *ForwardConfig) { c.Hosts = nil },
			func(c *ForwardConfig) {
				c.Dial = func(context.Context, string, string) (net.Conn, error) { panic("oh") }
			},
		} {
			b := newBench(t, newNetwork(1), set)
			b.submit(3)
			pass(time.Minute)
			if n := b.end(); n.given != 4 {
				t.Errorf("%+v", n)
			}
		}
		b := newBench(t, newNetwork(1), func(c *ForwardConfig) { c.Compress = "lzma" })
		b.submit(3)
		b.await(3)
		b.end()
	})
}

// Whatever many servers do, the law holds.
func TestForwardLaw(t *testing.T) {
	var names []string
	for name := range ills {
		names = append(names, name)
	}
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		seed := rand.Uint64()
		if v, err := strconv.ParseUint(os.Getenv("SPILLWAY_OUTPUT_SEED"), 10, 64); err == nil {
			seed = v
		}
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("SPILLWAY_OUTPUT_SEED=%d", seed)
				}
			}()
			r := rand.New(rand.NewPCG(seed, 1))
			w := newNetwork(1 + r.IntN(3))
			var well atomic.Bool
			for _, s := range w {
				s.room = []int{30, 300, 1 << 20}[r.IntN(3)]
				seed := r.Uint64()
				s.script = func(n int, p *peer) {
					r := rand.New(rand.NewPCG(seed, uint64(n)))
					if well.Load() || r.IntN(3) == 0 {
						p.serveSome(1 + r.IntN(30))
						if !well.Load() {
							return
						}
						p.serve()
						return
					}
					ills[names[r.IntN(len(names))]](p)
				}
			}
			var b *bench
			b = newBench(t, w, func(c *ForwardConfig) {
				c.Window = 1 + r.IntN(8)
				if r.IntN(2) == 0 {
					share := r.IntN(4)
					c.HandleError = func(err error, c *forward.Chunk) error {
						if rand.IntN(3) < share {
							return errors.New("no")
						}
						<-time.After(time.Duration(rand.N(900)) * time.Millisecond)
						return b.take(err, c)
					}
				}
			})
			for range 40 {
				for range r.IntN(10) {
					b.submitChunk(r.IntN(500))
				}
				pass(time.Duration(r.IntN(5000)) * time.Millisecond)
				s := w[w.names()[r.IntN(len(w))]]
				switch r.IntN(6) {
				case 0:
					s.kill()
				case 1, 2:
					s.start()
				}
			}
			if r.IntN(3) > 0 {
				well.Store(true)
				for _, s := range w {
					s.start()
				}
				b.await(b.n)
			}
			b.end()
		})
	}
}
