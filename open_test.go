// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
)

// closed closes a logger, which has minutes for it.
func closed(t *testing.T, l *Logger) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	return l.Close(ctx)
}

func fileURL(path string) string { return "file:" + filepath.ToSlash(path) }

// read returns the lines of a file of JSON.
func read(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		var m map[string]any
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		all = append(all, m)
	}
	return all
}

func law(t *testing.T, s Stats) {
	t.Helper()
	if s.Accepted != s.Delivered+s.HandedOver+s.DeadLettered+s.Dropped+s.Lost+s.Held {
		t.Errorf("accepted is not the sum of the rest: %+v", s)
	}
}

// TestOrderAcrossTags: in a file the lines of a goroutine stand in the order of its calls, whatever
// their tags.
func TestOrderAcrossTags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	l := opened(t, fileURL(path), &Options{Shm: noShm, Overflow: OverflowBlock})
	const n = 5000
	for i := range n {
		if err := l.Post(fmt.Sprint("t", i*i%23), struct{ I int }{i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := closed(t, l); err != nil {
		t.Fatal(err)
	}
	all := read(t, path)
	for i, m := range all {
		if m["I"] != float64(i) || m["tag"] != fmt.Sprint("t", i*i%23) {
			t.Fatalf("line %d is %v", i, m)
		}
	}
	if len(all) != n {
		t.Errorf("%d lines", len(all))
	}
}

func TestFile(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	path := filepath.Join(dir, "app.jsonl")
	l := opened(t, fileURL(path), &Options{
		Tag: "app", Shm: noShm, Dir: filepath.Join(dir, "spill"), Service: "shop",
		Sample: map[slog.Level]Sampling{slog.LevelDebug: {First: 1}}, Level: slog.LevelDebug,
	})
	const n = 500
	for i := range n {
		l.Info("m", slog.Int("i", i))
		l.Debug("d")
	}
	if err := l.Post("app.order", struct{ ID int }{42}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(l.Writer(), "a line without its end")
	if err := closed(t, l); err != nil {
		t.Fatal(err)
	}
	next, sampled := 0.0, 0.0
	tags := map[string]int{}
	for _, m := range read(t, path) {
		tags[m["tag"].(string)]++
		if m["service"] != "shop" {
			t.Errorf("no default field in %v", m)
		}
		switch m["msg"] {
		case "m":
			if m["i"] != next {
				t.Fatalf("%v comes for %v", m["i"], next)
			}
			next++
		case "events dropped":
			sampled += m["dropped"].(map[string]any)["sampled"].(float64)
		}
	}
	if next != n || tags["app.order"] != 1 {
		t.Errorf("%v messages, tags %v", next, tags)
	}
	if sampled != n-1 {
		t.Errorf("%v sampled events were told, want %d", sampled, n-1)
	}
	s := l.Stats()
	law(t, s)
	if s.Held != 0 || s.Sampled != n-1 || s.Delivered != s.Accepted {
		t.Errorf("%+v", s)
	}
	for deadline := time.Now().Add(4 * time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("goroutines are left: %s", buf[:runtime.Stack(buf, true)])
		}
	}
}

// TestFallbackLogger logs to a server that is down: all comes to the other logger, and all that did
// not is told.
func TestFallbackLogger(t *testing.T) {
	to, events := NewTest(nil)
	l := opened(t, "forward://"+needs.Address()+"?breaker=1&min_backoff=1ms&max_backoff=5ms", &Options{
		Tag: "app", Shm: noShm, RingSize: 256 << 10, ErrorHandler: FallbackTo(to), FlushInterval: time.Millisecond,
		Diagnostics: func(error) {},
	})
	states := l.Subscribe()
	const n = 20_000
	padding := strings.Repeat("x", 200)
	for i := range n {
		l.Info("m", slog.Int("i", i), slog.String("padding", padding))
	}
	if e := <-states; e.State != BreakerOpen && e.State != BreakerHalfOpen {
		t.Errorf("%+v", e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if err := l.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := closed(t, l); err != nil {
		t.Fatal(err)
	}
	s := l.Stats()
	law(t, s)
	last, got, told := int64(-1), uint64(0), uint64(0)
	for _, e := range events.All() {
		switch e.Message {
		case "m":
			i := e.Record["i"].(int64)
			if i <= last {
				t.Fatalf("%d comes after %d", i, last)
			}
			last = i
			got++
		case "events dropped":
			for _, k := range e.Record["dropped"].(map[string]any) {
				told += uint64(k.(int64))
			}
		}
	}
	if got+s.Refused != n || s.HandedOver != uint64(events.Len()) {
		t.Errorf("%d arrived of %d, %+v", got, n, s)
	}
	if told != s.Refused {
		t.Errorf("%d of %d were told", told, s.Refused)
	}
}

// TestNobody is a logger whose server is down, without a disk and without a fallback: calls return,
// Close returns, and says what is left.
func TestNobody(t *testing.T) {
	var full atomic.Int32
	l := opened(t, "forward://"+needs.Address(),
		&Options{Shm: noShm, RingSize: 256 << 10, Diagnostics: func(err error) {
			if errors.Is(err, ErrFull) {
				full.Add(1)
			}
		}})
	var err error
	for range 10_000 {
		if err = l.Post("t", map[string]any{"padding": strings.Repeat("x", 500)}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := l.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush: %v", err)
	}
	err = l.Close(ctx)
	var left *UndeliveredError
	if !errors.As(err, &left) || left.Events == 0 || len(left.Where) != 0 || !strings.Contains(err.Error(), "lost") {
		t.Errorf("Close: %v", err)
	}
	law(t, l.Stats())
	if n := full.Load(); n != 1 {
		t.Errorf("that it is full was told %d times", n)
	}
}

// TestDialAndDelivered hands connections to the logger, and hears of each chunk that was acked.
func TestDialAndDelivered(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &forward.Server{Handler: forward.HandlerFunc(func(context.Context, *forward.Chunk) error { return nil })}
	go server.Serve(ln)
	defer server.Close()
	dialled, delivered := make(chan string, 10), make(chan int, 100)
	l := opened(t, "forward://logs.invalid:1", &Options{
		Shm: noShm,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			select {
			case dialled <- network + " " + address:
			default:
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", ln.Addr().String())
		},
		Delivered: func(c *forward.Chunk) { delivered <- c.Events },
	})
	l.Info("m")
	if err := closed(t, l); err != nil {
		t.Fatal(err)
	}
	if got := <-dialled; got != "tcp logs.invalid:1" {
		t.Error(got)
	}
	if got := <-delivered; got != 1 {
		t.Error(got)
	}
}

func TestWaitDelivered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	l := opened(t, fileURL(path), &Options{Shm: noShm, WaitDelivered: true, MaxWait: time.Minute})
	for i := range 5 {
		l.Info("m", slog.Int("i", i))
		if n := len(read(t, path)); n != i+1 {
			t.Fatalf("%d lines after %d calls", n, i+1)
		}
	}
}

func TestDeliveredPanics(t *testing.T) {
	told := make(chan error, 1)
	l := opened(t, "discard:", &Options{
		Shm: noShm, Delivered: func(*forward.Chunk) { panic("boom") }, Diagnostics: func(err error) { told <- err },
	})
	l.Info("m")
	if err := closed(t, l); err != nil {
		t.Fatal(err)
	}
	if err := <-told; !strings.Contains(err.Error(), "boom") {
		t.Error(err)
	}
	if s := l.Stats(); s.Delivered != 1 {
		t.Errorf("%+v", s)
	}
}
