// SPDX-License-Identifier: Apache-2.0

package logger

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
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// The logger's tests open the logger as an application does, on folders of their own.

// TestLoggerServer has a server treat the logger badly for its first chunks, and well then: all
// that was accepted is there, once and in order.
func TestLoggerServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		query string
		set   func(s *rig.FakeServer, bad func() bool)
	}{
		{"healthy", "", func(s *rig.FakeServer, _ func() bool) {}},
		{"stalls", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					return false
				}
				c.Ack(id)
				return true
			}
		}},
		{"stalls from the beginning", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Greet = func(*rig.FakeConn) bool { return !bad() }
		}},
		{"resets after a chunk", "", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					c.Reset()
					return true
				}
				c.Ack(id)
				return true
			}
		}},
		{"resets within a chunk", "", func(s *rig.FakeServer, bad func() bool) {
			s.Greet = func(c *rig.FakeConn) bool {
				if bad() {
					_, _ = c.Read(make([]byte, 1000)) //nolint:errcheck // it is reset next
					c.Reset()
				}
				return true
			}
		}},
		{"never acks", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			deaf := map[*rig.FakeConn]bool{}
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if deaf[c] || bad() {
					deaf[c] = true
					return true
				}
				c.Ack(id)
				return true
			}
		}},
		{"acks late", "ack_timeout=2s", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					c.AckLater(id, 20*time.Millisecond)
				} else {
					c.Ack(id)
				}
				return true
			}
		}},
		{"acks too late", "ack_timeout=50ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					c.AckLater(id, 60*time.Millisecond)
				} else {
					c.Ack(id)
				}
				return true
			}
		}},
		{"acks what nobody sent", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					c.Ack(rig.NewID())
				} else {
					c.Ack(id)
				}
				return true
			}
		}},
		{"acks half", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				b := rig.AckBytes(id)
				if bad() {
					c.Say(b[:len(b)/2])
					c.CloseWrite() //nolint:errcheck // the client may be gone
					return true
				}
				c.Say(b)
				return true
			}
		}},
		{"acks twice", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				c.Ack(id)
				if bad() {
					c.Ack(id)
				}
				return true
			}
		}},
		{"answers with noise", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					c.Say([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				} else {
					c.Ack(id)
				}
				return true
			}
		}},
		{"half closes", "ack_timeout=200ms", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					c.CloseWrite() //nolint:errcheck // the client may be gone
				} else {
					c.Ack(id)
				}
				return true
			}
		}},
		{"dies between chunks", "", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				c.Ack(id)
				if bad() {
					go func() {
						s.Down()
						time.AfterFunc(10*time.Millisecond, s.Up)
					}()
				}
				return true
			}
		}},
		{"dies before acks", "", func(s *rig.FakeServer, bad func() bool) {
			s.Manners = func(c *rig.FakeConn, id string) bool {
				if bad() {
					go func() {
						s.Down()
						time.AfterFunc(10*time.Millisecond, s.Up)
					}()
					return true
				}
				c.Ack(id)
				return true
			}
		}},
		{"is down at first", "", func(s *rig.FakeServer, _ func() bool) {
			s.Down()
			time.AfterFunc(300*time.Millisecond, s.Up)
		}},
	} {
		for _, spill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/spill=%t", tt.name, spill), func(t *testing.T) {
				t.Parallel()
				r := rig.Random(t)
				h := rig.NewHome(t)
				s := rig.NewFake(t)
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
					o.Dir = h.Dir
				}
				l := h.Open(s.URL(tt.query), o)
				const n = 2000
				posters := rig.PostAll(t, l, "s", n, rand.New(rand.NewPCG(r.Uint64(), 0)))
				stats := rig.Closing(t, l)
				rig.WantLaw(t, stats)
				if stats.Delivered != stats.Accepted || stats.Accepted < 4*n {
					t.Errorf("want all to be delivered: %+v", stats)
				}
				s.Ledger.Check(t)
				for _, p := range posters {
					s.Ledger.WantStream(t, p.Stream, n, n)
				}
				h.WantEmpty()
				t.Logf("%d chunks on %d connections, %d of them repeated; %d refused", s.Chunks, s.Accepted,
					s.Ledger.Repeated, stats.Refused)
				if t.Failed() {
					h.Tell()
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
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			l := h.Open(s.URL(query), spillway.Options{FlushInterval: time.Millisecond})
			p := &rig.Poster{Stream: "idle.0"}
			for i := range 10 {
				rig.Must(t, p.Post(l, ""))
				rig.Must(t, l.Flush(t.Context()))
				if i%2 == 0 {
					rig.Eventually(t, "the event comes", func() bool { return s.Ledger.Events() == i+1 })
					// The connection is closed from this side, as by a server that ends; the client
					// has seen it when its side is closed too.
					s.Mu.Lock()
					for c := range s.Conns {
						c.CloseWrite() //nolint:errcheck // it may be closed
					}
					s.Mu.Unlock()
					rig.Eventually(t, "the connection ends", func() bool {
						s.Mu.Lock()
						defer s.Mu.Unlock()
						return len(s.Conns) == 0
					})
				}
			}
			rig.WantLaw(t, rig.Closing(t, l))
			rig.Eventually(t, "the last event comes, which without acks nobody awaits",
				func() bool { return s.Ledger.Events() == 10 })
			s.Ledger.Check(t)
			s.Ledger.WantStream(t, p.Stream, 10, 10)
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
				h := rig.NewHome(t)
				s := rig.NewFake(t)
				s.Down()
				o := spillway.Options{Overflow: tt.overflow, RingSize: 1 << 20, FlushInterval: time.Millisecond}
				if tt.overflow == spillway.OverflowBlock {
					o.MaxWait = time.Millisecond
				}
				if spill {
					o.Dir, o.MaxDisk = h.Dir, 4<<20
				}
				l := h.Open(s.URL(""), o)
				var accepted, refused uint64
				pad := strings.Repeat("p", 1000)
				for n := range uint64(20_000) {
					if refused >= 1000 && tt.overflow == spillway.OverflowBlock {
						break
					}
					switch err := l.Post("t.0", rig.Item{K: "over.0", N: n, Pad: pad}); {
					case err == nil:
						accepted++
					case errors.Is(err, spillway.ErrFull):
						refused++
					default:
						t.Fatal(err)
					}
				}
				full := l.Stats()
				s.Up()
				stats := rig.Closing(t, l)
				rig.WantLaw(t, stats)
				s.Ledger.Check(t)
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
				numbers := s.Ledger.Streams["over.0"]
				for i := 1; i < len(numbers); i++ {
					if numbers[i] <= numbers[i-1] {
						t.Fatalf("event %d comes after %d", numbers[i], numbers[i-1])
					}
				}
				if have := uint64(len(numbers)); have != accepted-stats.Dropped {
					t.Errorf("%d events came, want %d accepted - %d dropped", have, accepted, stats.Dropped)
				}
				if len(s.Ledger.Others) == 0 {
					t.Error("no event tells of the loss")
				}
				t.Logf("%d accepted, %d refused, %d dropped, %d spilled; while full: ring %d, disk %d; told: %v",
					accepted, refused, stats.Dropped, stats.Spilled,
					full.RingUsed, full.DiskUsed, s.Ledger.Others)
				if t.Failed() {
					h.Tell()
				}
			})
		}
	}
}

// TestLoggerWaitDelivered has each call return when its event is acked.
func TestLoggerWaitDelivered(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	l := h.Open(s.URL(""), spillway.Options{WaitDelivered: true, MaxWait: 5 * time.Minute, Tag: "t.0"})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			p := &rig.Poster{Stream: fmt.Sprintf("wait%d.0", g)}
			for range 100 {
				if err := p.Post(l, ""); err != nil {
					t.Errorf("Post: %v", err)
					return
				}
				s.Ledger.Mu.Lock()
				have := uint64(len(s.Ledger.Streams[p.Stream]))
				s.Ledger.Mu.Unlock()
				if have != p.Next {
					t.Errorf("%s: %d events have come when the call returned, want %d", p.Stream, have, p.Next)
				}
			}
		})
	}
	all.Wait()
	l.Info("leveled", slog.String("k", "level.0"), slog.Int("n", 0))
	s.Ledger.WantStream(t, "level.0", 1, 1)
	rig.WantLaw(t, rig.Closing(t, l))
	s.Ledger.Check(t)
}
