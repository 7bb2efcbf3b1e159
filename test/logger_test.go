// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
)

// The logger's tests open the logger as an application does, on folders of their own.

// A home is where loggers of one name keep their rings and spills.
type home struct {
	t         testing.TB
	shm, dir  string
	mu        sync.Mutex
	diagnoses []string
}

// newHome makes the folders, that of the rings in memory where there is a file system for that.
func newHome(t testing.TB) *home {
	t.Helper()
	shm, err := os.MkdirTemp("/dev/shm", "spillway-test-")
	if err != nil {
		shm = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	dir, err := os.MkdirTemp("", "spillway-test-")
	must(t, err)
	t.Cleanup(func() { // what a Close that was bounded left behind may still write
		eventually(t, "the spill's folder can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return &home{t: t, shm: shm, dir: filepath.Join(dir, "spill")}
}

// open opens a logger here; o's folders and name are set, Dir unless there is to be no spill.
func (h *home) open(destination string, o spillway.Options) *spillway.Logger {
	h.t.Helper()
	o.Name, o.Shm = "trial", h.shm
	o.Diagnostics = h.diagnose
	l, err := spillway.Open(destination, &o)
	if err != nil {
		h.t.Fatalf("Open(%q): %v", destination, err)
	}
	return l
}

func (h *home) diagnose(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.diagnoses) < 1000 {
		h.diagnoses = append(h.diagnoses, err.Error())
	}
}

// said tells whether a diagnosis has all parts in it.
func (h *home) said(parts ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
lines:
	for _, d := range h.diagnoses {
		for _, p := range parts {
			if !strings.Contains(d, p) {
				continue lines
			}
		}
		return true
	}
	return false
}

func (h *home) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.t.Logf("%d diagnoses:\n%s", len(h.diagnoses), strings.Join(h.diagnoses[:min(20, len(h.diagnoses))], "\n"))
}

// rings are the folders of rings that are there.
func (h *home) rings() []string {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.shm, "*", "*"))
	must(h.t, err)
	return found
}

// left are those that hold something: a process may have been killed when it had just made the
// folder of its ring, or removed all but that.
func (h *home) left() []string {
	h.t.Helper()
	return slices.DeleteFunc(h.rings(), func(dir string) bool {
		files, err := os.ReadDir(dir)
		return strings.HasSuffix(dir, ".tmp") && len(files) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
	})
}

// wantEmpty checks that neither rings nor spilled chunks are left. A kill in the middle of a write
// may have cut a record of a spill short: its events are in the ring still, and what is there of it
// is set aside, never deleted.
func (h *home) wantEmpty() {
	h.t.Helper()
	found, err := filepath.Glob(filepath.Join(h.dir, "*"))
	must(h.t, err)
	for _, dir := range append(found, h.rings()...) {
		aside, err := filepath.Glob(filepath.Join(dir, "quarantine", "*"))
		must(h.t, err)
		if len(aside) > 0 {
			h.t.Logf("set aside: %s", strings.Join(aside, ", "))
			continue
		}
		var files []string
		must(h.t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				info, ierr := d.Info()
				must(h.t, ierr)
				files = append(files, fmt.Sprintf("%v %d %s", info.Mode(), info.Size(), name))
			}
			return err
		}))
		if strings.HasSuffix(dir, ".tmp") && len(files) == 1 {
			h.t.Logf("a process was killed while it made its ring, %s: removed when it is a minute old", dir)
			continue
		}
		h.t.Errorf("left behind:\n%s", strings.Join(files, "\n"))
	}
}

// wantLaw checks that nothing that was accepted is unaccounted for.
func wantLaw(t testing.TB, s spillway.Stats) {
	t.Helper()
	if sum := s.Delivered + s.HandedOver + s.Dropped + s.Lost + s.Held; sum != s.Accepted {
		t.Errorf("accepted %d, but delivered + handed over + dropped + lost + held = %d: %+v", s.Accepted, sum, s)
	}
	for _, by := range []struct {
		what string
		n    uint64
		m    map[string]uint64
	}{{"dropped", s.Dropped, s.DroppedBy}, {"refused", s.Refused, s.RefusedBy}} {
		sum := uint64(0)
		for _, n := range by.m {
			sum += n
		}
		if sum != by.n {
			t.Errorf("%s %d, but by reason %v", by.what, by.n, by.m)
		}
	}
}

// closing closes a logger and wants all to be delivered, however much a busy machine has left of
// it: patience ends when it holds as much as before for so long.
func closing(t testing.TB, l *spillway.Logger) spillway.Stats {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	closed := make(chan error, 1)
	go func() { closed <- l.Close(ctx) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	have, moved := l.Stats().Held, time.Now()
	for {
		select {
		case err := <-closed:
			if err != nil {
				t.Errorf("Close: %v", err)
			}
			return l.Stats()
		case <-tick.C:
			if now := l.Stats().Held; now != have {
				have, moved = now, time.Now()
			} else if time.Since(moved) > patience {
				cancel(fmt.Errorf("closing has got nowhere for %v", patience))
			}
		}
	}
}

// An item is what the tests post.
type item struct {
	K   string `json:"k"`
	N   uint64 `json:"n"`
	Pad string `json:"pad,omitempty"`
}

// A poster posts the events of one stream, half of them as structs under the stream's tag and half
// as leveled calls, when the logger's tag is the stream's.
type poster struct {
	stream string
	next   uint64
}

func (p *poster) post(l *spillway.Logger, pad string) error {
	err := l.Post(tagOf(p.stream, p.next), item{p.stream, p.next, pad})
	if err == nil {
		p.next++
	}
	return err
}

// postAll posts n events in each of four streams, from a goroutine each, in bursts. Events that are
// refused are posted again.
func postAll(t testing.TB, l *spillway.Logger, prefix string, n int, r *rand.Rand) []*poster {
	t.Helper()
	var all sync.WaitGroup
	posters := make([]*poster, 4)
	for g := range posters {
		p := &poster{stream: fmt.Sprintf("%s.%d", prefix, g)}
		posters[g] = p
		pause := time.Duration(1 + r.IntN(2))
		burst := uint64(20 + r.IntN(100))
		pad := strings.Repeat("p", r.IntN(300))
		all.Go(func() {
			for p.next < uint64(n) {
				switch err := p.post(l, pad); {
				case errors.Is(err, spillway.ErrFull):
					<-time.After(time.Millisecond)
				case err != nil:
					t.Errorf("Post: %v", err)
					return
				case p.next%burst == 0:
					<-time.After(pause * time.Millisecond) // so that there are many chunks
				}
			}
		})
	}
	all.Wait()
	return posters
}

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
