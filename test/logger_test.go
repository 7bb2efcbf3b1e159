// SPDX-License-Identifier: Apache-2.0

package test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// The logger's tests open the logger as an application does, on folders of their own.

// TestLoggerServer has a server treat the logger badly for its first chunks, and well then: all
// that was accepted is there, once and in order.
func TestLoggerServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		query string
		set   func(s *fakeServer, bad func() bool)
	}{
		{"healthy", "", func(s *fakeServer, _ func() bool) {}},
		{"stalls", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					return false
				}
				c.ack(id)
				return true
			}
		}},
		{"stalls from the beginning", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.greet = func(*fakeConn) bool { return !bad() }
		}},
		{"resets after a chunk", "", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					c.reset()
					return true
				}
				c.ack(id)
				return true
			}
		}},
		{"resets within a chunk", "", func(s *fakeServer, bad func() bool) {
			s.greet = func(c *fakeConn) bool {
				if bad() {
					_, _ = c.Read(make([]byte, 1000)) //nolint:errcheck // it is reset next
					c.reset()
				}
				return true
			}
		}},
		{"never acks", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			deaf := map[*fakeConn]bool{}
			s.manners = func(c *fakeConn, id string) bool {
				if deaf[c] || bad() {
					deaf[c] = true
					return true
				}
				c.ack(id)
				return true
			}
		}},
		{"acks late", "ack_timeout=2s", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					c.ackLater(id, 20*time.Millisecond)
				} else {
					c.ack(id)
				}
				return true
			}
		}},
		{"acks too late", "ack_timeout=50ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					c.ackLater(id, 60*time.Millisecond)
				} else {
					c.ack(id)
				}
				return true
			}
		}},
		{"acks what nobody sent", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					c.ack(newID())
				} else {
					c.ack(id)
				}
				return true
			}
		}},
		{"acks half", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				b := ackBytes(id)
				if bad() {
					c.say(b[:len(b)/2])
					c.CloseWrite() //nolint:errcheck // the client may be gone
					return true
				}
				c.say(b)
				return true
			}
		}},
		{"acks twice", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				c.ack(id)
				if bad() {
					c.ack(id)
				}
				return true
			}
		}},
		{"answers with noise", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					c.say([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				} else {
					c.ack(id)
				}
				return true
			}
		}},
		{"half closes", "ack_timeout=200ms", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					c.CloseWrite() //nolint:errcheck // the client may be gone
				} else {
					c.ack(id)
				}
				return true
			}
		}},
		{"dies between chunks", "", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				c.ack(id)
				if bad() {
					go func() {
						s.down()
						time.AfterFunc(10*time.Millisecond, s.up)
					}()
				}
				return true
			}
		}},
		{"dies before acks", "", func(s *fakeServer, bad func() bool) {
			s.manners = func(c *fakeConn, id string) bool {
				if bad() {
					go func() {
						s.down()
						time.AfterFunc(10*time.Millisecond, s.up)
					}()
					return true
				}
				c.ack(id)
				return true
			}
		}},
		{"is down at first", "", func(s *fakeServer, _ func() bool) {
			s.down()
			time.AfterFunc(300*time.Millisecond, s.up)
		}},
	} {
		for _, spill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/spill=%t", tt.name, spill), func(t *testing.T) {
				t.Parallel()
				r := random(t)
				h := newHome(t)
				s := newFake(t)
				var mu sync.Mutex
				moods := rand.New(rand.NewPCG(r.Uint64(), 1))
				left := 12
				tt.set(s, func() bool {
					mu.Lock()
					defer mu.Unlock()
					if left > 0 && moods.IntN(2) == 0 {
						left--
						return true
					}
					return false
				})
				o := spillway.Options{FlushInterval: time.Millisecond, RingSize: 1 << 20}
				if spill {
					o.Dir = h.dir
				}
				l := h.open(s.url(tt.query), o)
				const n = 2000
				posters := postAll(t, l, "s", n, rand.New(rand.NewPCG(r.Uint64(), 0)))
				stats := closing(t, l)
				wantLaw(t, stats)
				if stats.Delivered != stats.Accepted || stats.Accepted < 4*n {
					t.Errorf("want all to be delivered: %+v", stats)
				}
				s.ledger.check(t)
				for _, p := range posters {
					s.ledger.wantStream(t, p.stream, n, n)
				}
				h.wantEmpty()
				t.Logf("%d chunks on %d connections, %d of them repeated; %d refused", s.chunks, s.accepted,
					s.ledger.repeated, stats.Refused)
				if t.Failed() {
					h.tell()
				}
			})
		}
	}
}

// TestLoggerIdle has a server restart between two events, long apart: the first event after it is
// not lost, with acks and without.
func TestLoggerIdle(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "ack=false"} {
		t.Run(query, func(t *testing.T) {
			h := newHome(t)
			s := newFake(t)
			l := h.open(s.url(query), spillway.Options{FlushInterval: time.Millisecond})
			p := &poster{stream: "idle.0"}
			for i := range 10 {
				must(t, p.post(l, ""))
				must(t, l.Flush(t.Context()))
				if i%2 == 0 {
					eventually(t, "the event comes", func() bool { return s.ledger.events() == i+1 })
					// The connection is closed from this side, as by a server that ends; the client
					// has seen it when its side is closed too.
					s.mu.Lock()
					for c := range s.conns {
						c.CloseWrite() //nolint:errcheck // it may be closed
					}
					s.mu.Unlock()
					eventually(t, "the connection ends", func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return len(s.conns) == 0
					})
				}
			}
			wantLaw(t, closing(t, l))
			eventually(t, "the last event comes, which without acks nobody awaits",
				func() bool { return s.ledger.events() == 10 })
			s.ledger.check(t)
			s.ledger.wantStream(t, p.stream, 10, 10)
		})
	}
}

// TestLoggerOverflow fills a ring that nobody empties, and then empties it: what was refused or
// dropped is counted, and told by one event.
func TestLoggerOverflow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		overflow spillway.Overflow
	}{
		{"newest", spillway.OverflowDropNewest},
		{"oldest", spillway.OverflowDropOldest},
		{"block", spillway.OverflowBlock}, // each refused call waits its millisecond
	} {
		for _, spill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/spill=%t", tt.name, spill), func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				s := newFake(t)
				s.down()
				o := spillway.Options{Overflow: tt.overflow, RingSize: 1 << 20, FlushInterval: time.Millisecond}
				if tt.overflow == spillway.OverflowBlock {
					o.MaxWait = time.Millisecond
				}
				if spill {
					o.Dir, o.MaxDisk = h.dir, 4<<20
				}
				l := h.open(s.url(""), o)
				var accepted, refused uint64
				pad := strings.Repeat("p", 1000)
				for n := range uint64(20_000) {
					if refused >= 1000 && tt.overflow == spillway.OverflowBlock {
						break
					}
					switch err := l.Post("t.0", item{"over.0", n, pad}); {
					case err == nil:
						accepted++
					case errors.Is(err, spillway.ErrFull):
						refused++
					default:
						t.Fatal(err)
					}
				}
				full := l.Stats()
				s.up()
				stats := closing(t, l)
				wantLaw(t, stats)
				s.ledger.check(t)
				if stats.Refused != refused {
					t.Errorf("%d refused, want the %d that calls were told of", stats.Refused, refused)
				}
				if lost := stats.Dropped + stats.Refused; lost == 0 {
					t.Error("nothing was lost: the test is too small")
				}
				// A call waits a tenth of a second for the oldest to be dropped; on a busy machine
				// now and then one waits in vain.
				if tt.overflow == spillway.OverflowDropOldest && (refused > 200 || stats.Dropped == 0) {
					t.Errorf("%d refused and %d dropped although the oldest are to be dropped", refused, stats.Dropped)
				}
				numbers := s.ledger.streams["over.0"]
				for i := 1; i < len(numbers); i++ {
					if numbers[i] <= numbers[i-1] {
						t.Fatalf("event %d comes after %d", numbers[i], numbers[i-1])
					}
				}
				if have := uint64(len(numbers)); have != accepted-stats.Dropped {
					t.Errorf("%d events came, want %d accepted - %d dropped", have, accepted, stats.Dropped)
				}
				if len(s.ledger.others) == 0 {
					t.Error("no event tells of the loss")
				}
				t.Logf("%d accepted, %d refused, %d dropped, %d spilled; while full: ring %d, disk %d; told: %v",
					accepted, refused, stats.Dropped, stats.Spilled,
					full.RingUsed, full.DiskUsed, s.ledger.others)
				if t.Failed() {
					h.tell()
				}
			})
		}
	}
}

// TestLoggerWaitDelivered has each call return when its event is acked.
func TestLoggerWaitDelivered(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	l := h.open(s.url(""), spillway.Options{WaitDelivered: true, MaxWait: 5 * time.Minute, Tag: "t.0"})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			p := &poster{stream: fmt.Sprintf("wait%d.0", g)}
			for range 100 {
				if err := p.post(l, ""); err != nil {
					t.Errorf("Post: %v", err)
					return
				}
				s.ledger.mu.Lock()
				have := uint64(len(s.ledger.streams[p.stream]))
				s.ledger.mu.Unlock()
				if have != p.next {
					t.Errorf("%s: %d events have come when the call returned, want %d", p.stream, have, p.next)
				}
			}
		})
	}
	all.Wait()
	l.Info("leveled", slog.String("k", "level.0"), slog.Int("n", 0))
	s.ledger.wantStream(t, "level.0", 1, 1)
	wantLaw(t, closing(t, l))
	s.ledger.check(t)
}
