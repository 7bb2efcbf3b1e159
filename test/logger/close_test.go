// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// Flush and Close return by their context, whatever is at the other end; what is left is delivered
// by the next logger. The contexts of these tests have deadlines of fractions of a second, and the
// calls minutes until the test gives up: no time is asserted.

// canceled is a context that ends soon.
func canceled(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 100*time.Millisecond)
}

// bounded calls f with a context that ends soon, and wants its error.
func bounded(t testing.TB, what string, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := canceled(t)
	defer cancel()
	returned := make(chan error, 1)
	go func() { returned <- f(ctx) }()
	select {
	case err := <-returned:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want one that is context.DeadlineExceeded", what, err)
		}
	case <-time.After(rig.Patience):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s does not return\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
}

func TestLoggerCloseBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		server func(s *rig.FakeServer)
	}{
		{"dead", (*rig.FakeServer).Down},
		{"stalled", func(s *rig.FakeServer) { s.Greet = func(*rig.FakeConn) bool { return false } }},
		{"never acks", func(s *rig.FakeServer) { s.Manners = func(*rig.FakeConn, string) bool { return true } }},
		{"half closed", func(s *rig.FakeServer) {
			s.Greet = func(c *rig.FakeConn) bool {
				c.CloseWrite() //nolint:errcheck // the client may be gone
				return false
			}
		}},
		{"resets", func(s *rig.FakeServer) {
			s.Greet = func(c *rig.FakeConn) bool { c.Reset(); return true }
		}},
	} {
		for _, spill := range []bool{false, true} {
			for _, query := range []string{"", "ack=false"} {
				t.Run(fmt.Sprintf("%s/spill=%t/%s", tt.name, spill, query), func(t *testing.T) {
					t.Parallel()
					h := rig.NewHome(t)
					s := rig.NewFake(t)
					tt.server(s)
					o := spillway.Options{RingSize: 4 << 20}
					if spill {
						o.Dir = h.Dir
					}
					l := h.Open(s.URL(query), o)
					p := &rig.Poster{Stream: "left.0"}
					pad := string(make([]byte, 10_000))
					for range 2000 { // more than sockets hold
						if err := p.Post(l, pad); errors.Is(err, spillway.ErrFull) {
							break
						} else if err != nil {
							t.Fatal(err)
						}
					}
					if query == "ack=false" && tt.name != "dead" {
						// What was written counts as delivered, or is lost with the connection:
						// only that the calls return is asked.
						ctx, cancel := canceled(t)
						defer cancel()
						_ = l.Flush(ctx) //nolint:errcheck // see above
						_ = l.Close(ctx) //nolint:errcheck // see above
						rig.WantLaw(t, l.Stats())
						return
					}
					bounded(t, "Flush", l.Flush)
					rig.WantLaw(t, l.Stats())
					bounded(t, "Close", func(ctx context.Context) error {
						err := l.Close(ctx)
						var left *spillway.UndeliveredError
						if !errors.As(err, &left) || left.Events == 0 || len(left.Where) == 0 {
							t.Errorf("Close: %v, want an UndeliveredError that says how much is left and where", err)
						}
						return err
					})
					rig.WantLaw(t, l.Stats())
					wantClosed(t, l)
					if query != "" {
						return // at most once, or at least once
					}
					s.Mu.Lock()
					s.HangUp()
					s.Greet, s.Manners = nil, nil
					s.Mu.Unlock()
					s.Up()
					rig.WantLaw(t, rig.Closing(t, h.Open(s.URL(query), o)))
					s.Ledger.Check(t)
					s.Ledger.WantStream(t, p.Stream, p.Next, p.Next)
					h.WantEmpty()
					if t.Failed() {
						h.Tell()
					}
				})
			}
		}
	}
}

// wantClosed uses a logger after Close, in every way.
func wantClosed(t testing.TB, l *spillway.Logger) {
	t.Helper()
	if err := l.Post("a", rig.Item{}); !errors.Is(err, spillway.ErrClosed) {
		t.Errorf("Post after Close: %v", err)
	}
	if err := l.PostWithTime("a", time.Now(), rig.Item{}); !errors.Is(err, spillway.ErrClosed) {
		t.Errorf("PostWithTime after Close: %v", err)
	}
	if err := l.PostRaw("a", time.Now(), []byte{0x80}); !errors.Is(err, spillway.ErrClosed) {
		t.Errorf("PostRaw after Close: %v", err)
	}
	before := l.Stats()
	l.Info("after Close")
	l.With(slog.Int("a", 1)).WithGroup("g").Error("after Close")
	slog.New(l.Handler()).Info("after Close")
	l.StdLogger(slog.LevelInfo).Print("after Close")
	fmt.Fprintln(l.Writer(), "after Close")
	if after := l.Stats(); after.Accepted != before.Accepted {
		t.Errorf("%d events accepted after Close", after.Accepted-before.Accepted)
	}
	if err := l.Flush(t.Context()); err != nil && !errors.Is(err, spillway.ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
	if err := l.Close(t.Context()); err != nil && !errors.Is(err, spillway.ErrClosed) {
		var left *spillway.UndeliveredError
		if !errors.As(err, &left) {
			t.Errorf("Close after Close: %v", err)
		}
	}
	_ = l.Stats()
}

// TestLoggerCloseTogether closes and flushes from many goroutines while others log.
func TestLoggerCloseTogether(t *testing.T) {
	t.Parallel()
	for _, destination := range []string{"forward", "file", "discard"} {
		t.Run(destination, func(t *testing.T) {
			t.Parallel()
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			out := filepath.Join(t.TempDir(), "out.jsonl")
			url := map[string]string{"forward": s.URL(""), "file": "file://" + out, "discard": "discard:"}[destination]
			l := h.Open(url, spillway.Options{FlushInterval: time.Millisecond})
			var all sync.WaitGroup
			posters := make([]*rig.Poster, 4)
			for g := range posters {
				p := &rig.Poster{Stream: fmt.Sprintf("s.%d", g)}
				posters[g] = p
				all.Go(func() {
					for {
						err := p.Post(l, "")
						if errors.Is(err, spillway.ErrClosed) {
							return
						}
						if err != nil && !errors.Is(err, spillway.ErrFull) {
							t.Errorf("Post: %v", err)
							return
						}
					}
				})
			}
			all.Go(func() {
				for range 10 {
					if err := l.Flush(t.Context()); err != nil && !errors.Is(err, spillway.ErrClosed) {
						t.Errorf("Flush: %v", err)
					}
				}
			})
			rig.Eventually(t, "all log", func() bool { return l.Stats().Accepted > 1000 })
			for range 3 {
				all.Go(func() { rig.Closing(t, l) })
			}
			all.Wait()
			stats := l.Stats()
			rig.WantLaw(t, stats)
			if stats.Held > 0 || stats.Delivered != stats.Accepted {
				t.Errorf("want all to be delivered: %+v", stats)
			}
			wantClosed(t, l)
			into := s.Ledger
			switch destination {
			case "discard":
				return
			case "file":
				for _, text := range rig.ReadLines(t, filepath.Dir(out)) {
					into.Line(text)
				}
			}
			into.Check(t)
			for _, p := range posters {
				into.WantStream(t, p.Stream, p.Next, p.Next)
			}
			h.WantEmpty()
		})
	}
}

// TestLoggerDNS has the name server hang.
func TestLoggerDNS(t *testing.T) { // not beside others: the resolver is everybody's
	saved := net.DefaultResolver
	defer func() { net.DefaultResolver = saved }()
	asked := make(chan struct{})
	var once sync.Once
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		once.Do(func() { close(asked) })
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	h := rig.NewHome(t)
	l := h.Open("forward://log.example.com:24224", spillway.Options{FlushInterval: time.Millisecond})
	rig.Must(t, l.Post("t.0", rig.Item{K: "dns.0"}))
	<-asked
	bounded(t, "Flush", l.Flush)
	bounded(t, "Close", l.Close)
	stats := l.Stats()
	rig.WantLaw(t, stats)
	if stats.Held != 1 {
		t.Errorf("want one event to be held: %+v", stats)
	}
	wantClosed(t, l)
}

// TestLoggerStuckStream has nobody read standard output.
func TestLoggerStuckStream(t *testing.T) { // not beside others: standard output is everybody's
	r, w, err := os.Pipe()
	rig.Must(t, err)
	defer w.Close()
	saved := os.Stdout
	os.Stdout = w
	h := rig.NewHome(t)
	l := h.Open("stdout:", spillway.Options{FlushInterval: time.Millisecond})
	os.Stdout = saved
	const n = 1000
	for i := range n {
		rig.Must(t, l.Post("t.0", rig.Item{K: "out.0", N: uint64(i), Pad: string(make([]byte, 1000))}))
	}
	bounded(t, "Flush", l.Flush)
	bounded(t, "Close", l.Close)
	rig.WantLaw(t, l.Stats())
	wantClosed(t, l)
	r.Close() // so that the thread that the kernel holds returns
}

// TestLoggerStdout reads what is written to standard output.
func TestLoggerStdout(t *testing.T) { // not beside others: standard output is everybody's
	r, w, err := os.Pipe()
	rig.Must(t, err)
	saved := os.Stdout
	os.Stdout = w
	h := rig.NewHome(t)
	l := h.Open("stdout:", spillway.Options{FlushInterval: time.Millisecond})
	os.Stdout = saved
	const n = 1000
	read := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r) //nolint:errcheck // what is missing shows
		read <- b
	}()
	for i := range n {
		rig.Must(t, l.Post("t.0", rig.Item{K: "out.0", N: uint64(i)}))
	}
	rig.WantLaw(t, rig.Closing(t, l))
	w.Close()
	into := rig.NewLedger()
	for text := range bytes.Lines(<-read) {
		parsed, err := rig.ParseLine(text)
		rig.Must(t, err)
		into.Line(parsed)
	}
	into.Check(t)
	into.WantStream(t, "out.0", n, n)
}
