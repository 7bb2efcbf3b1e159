// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/mover"
)

func TestClose(t *testing.T) {
	for name, open := range map[string]func() *Logger{
		"test":    func() *Logger { l, _ := NewTest(nil); return l },
		"discard": func() *Logger { return opened(t, "discard:", &Options{Shm: noShm}) },
	} {
		l := open()
		m := l.With(slog.Int("a", 1))
		l.Info("m")
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := l.Close(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		if err := m.Close(ctx); err != nil {
			t.Errorf("%s: again: %v", name, err)
		}
		cancel()
		if err := m.Post("t", map[string]any{}); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: Post: %v", name, err)
		}
		if err := m.PostRaw("t", time.Time{}, []byte{0x80}); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: PostRaw: %v", name, err)
		}
		m.Info("m")
		if err := m.Flush(context.Background()); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("%s: Flush: %v", name, err)
		}
		if _, open := <-m.Subscribe(); open {
			t.Errorf("%s: Subscribe: not closed", name)
		}
		if s := l.Stats(); s.Accepted != 1 || s.Delivered != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// opened opens a logger that is closed at the end of the test.
func opened(t testing.TB, destination string, o *Options) *Logger {
	t.Helper()
	l, err := Open(destination, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

func TestFatal(t *testing.T) {
	code := 0
	l, events := NewTest(&Options{Exit: func(c int) { code = c }})
	l.With(slog.Int("a", 1)).Fatal("m", slog.Int("b", 2))
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	expect(t, events, `{"level":"FATAL","msg":"m","a":1,"b":2}`)
	if err := l.Post("t", map[string]any{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	l, events = NewTest(&Options{Exit: func(c int) { code = c + 1 }})
	l.SetLevel(LevelFatal + 1)
	l.Fatal("m")
	if code != 2 || events.Len() != 0 {
		t.Errorf("exit %d, %d events", code, events.Len())
	}
}

func TestRecover(t *testing.T) {
	l, events := NewTest(nil)
	boom := errors.New("boom")
	for _, value := range []any{boom, "text", 5, struct{ A int }{1}, panicker{}} {
		func() {
			defer func() {
				if v := recover(); v != value {
					t.Errorf("panicked with %v, want %v", v, value)
				}
			}()
			defer l.Recover()
			panic(value)
		}()
	}
	func() { defer l.Recover() }()
	want := []any{"boom", "text", int64(5), map[string]any{"A": int64(1)}, "!PANIC"}
	all := events.All()
	if len(all) != len(want) {
		t.Fatalf("%d events", len(all))
	}
	for i, e := range all {
		got := e.Record["panic"]
		if s, ok := got.(string); ok && strings.HasPrefix(s, "!PANIC") {
			got = "!PANIC"
		}
		if m, ok := got.(map[string]any); ok {
			if m["A"] != int64(1) {
				t.Errorf("%v", m)
			}
		} else if got != want[i] {
			t.Errorf("%v, want %v", got, want[i])
		}
		if e.Level != LevelFatal || e.Message != "panic" ||
			!strings.Contains(e.Record["stack"].(string), "TestRecover") {
			t.Errorf("%+v", e)
		}
	}
}

// A panicker panics when it is looked at.
type panicker struct{}

func (panicker) String() string { panic("again") }
func (panicker) Error() string  { panic("again") }

func TestRecoverGoexit(t *testing.T) {
	l, events := NewTest(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		defer l.Recover()
		panic(nil) //nolint:govet // it becomes a *runtime.PanicNilError
	}()
	<-done
	if events.Len() != 1 {
		t.Errorf("%d events", events.Len())
	}
}

// TestCloseMeanwhile closes a logger while goroutines log: what was accepted is written, and
// nothing else.
func TestCloseMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.jsonl")
	l := opened(t, fileURL(path), &Options{Shm: noShm})
	var accepted atomic.Int64
	var wg sync.WaitGroup
	begun := make(chan struct{}, 100)
	for g := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				switch err := l.Post("t", map[string]any{"g": g, "i": i}); {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, ErrFull):
				case errors.Is(err, ErrClosed):
					return
				default:
					t.Error(err)
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		<-begun
	}
	if err := closed(t, l); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	n := int64(0)
	for _, m := range read(t, path) {
		if m["tag"] == "t" {
			n++
		}
	}
	if n != accepted.Load() {
		t.Errorf("%d lines, %d accepted", n, accepted.Load())
	}
	s := l.Stats()
	law(t, s)
	if s.Held != 0 {
		t.Errorf("%+v", s)
	}
}

// nobodyThere is a logger the calls of which wait for a destination that never comes.
func nobodyThere(t *testing.T, o Options) *Logger {
	t.Helper()
	o.Shm, o.WaitDelivered, o.Diagnostics = noShm, true, func(error) {}
	o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody there") }
	l, err := Open("forward://nobody", &o)
	if err != nil {
		t.Fatal(err)
	}
	l.c.lastWords = 100 * time.Millisecond
	return l
}

// TestLastWords would not end if Fatal or Recover waited for a destination that never comes.
func TestLastWords(t *testing.T) {
	exited := false
	l := nobodyThere(t, Options{Exit: func(int) { exited = true }})
	l.Fatal("m")
	if s := l.Stats(); !exited || s.Accepted != 1 {
		t.Errorf("exited: %v, %+v", exited, s)
	}
	l = nobodyThere(t, Options{})
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("panicked with %v", v)
			}
		}()
		defer l.Recover()
		panic("boom")
	}()
	if s := l.Stats(); s.Accepted != 1 {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.Close(ctx)
}

// TestErrorsOfClose keeps all that the mover has to say.
func TestErrorsOfClose(t *testing.T) {
	hangs := errors.New("it hangs")
	err := plainly(errors.Join(hangs, errors.Join(nil,
		&mover.UndeliveredError{Events: 3, Bytes: 4, Where: []string{"w"}, Lost: 5, Err: mover.ErrClosed})))
	var left *UndeliveredError
	if !errors.As(err, &left) || left.Events != 3 || left.Bytes != 4 || left.Where[0] != "w" || left.Lost != 5 ||
		!errors.Is(err, hangs) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(err.Error(), "5 more are lost") {
		t.Error(err)
	}
}

// TestErrorsSay whether an event was accepted.
func TestErrorsSay(t *testing.T) {
	for _, err := range []error{ErrTimeout, ErrDropped, ErrUndelivered} {
		if !errors.Is(err, ErrAccepted) || !strings.Contains(err.Error(), "event accepted") {
			t.Errorf("%v says that it was refused", err)
		}
	}
	for _, err := range []error{ErrClosed, ErrFull, ErrSlow, ErrTooLarge, ErrNotRecord, ErrTag} {
		if errors.Is(err, ErrAccepted) || strings.Contains(err.Error(), "accepted") {
			t.Errorf("%v says that it was accepted", err)
		}
	}
	if !errors.Is(ErrSlow, ErrFull) {
		t.Error("ErrSlow is no ErrFull")
	}
}

// TestWaitDeliveredBounded would not end if a call waited longer than MaxWait, or than its context,
// for a destination that never comes.
func TestWaitDeliveredBounded(t *testing.T) {
	l := nobodyThere(t, Options{MaxWait: 10 * time.Millisecond})
	if err := l.Post("t", map[string]int{"n": 1}); !errors.Is(err, ErrTimeout) {
		t.Errorf("after MaxWait: %v", err)
	}
	l.Info("m")
	patient := nobodyThere(t, Options{MaxWait: time.Hour, Level: LevelTrace})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := patient.PostContext(ctx, "t", map[string]int{"n": 1}); !errors.Is(err, ErrTimeout) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the context's end: %v", err)
	}
	for _, call := range []func(context.Context, string, ...slog.Attr){
		patient.TraceContext, patient.DebugContext, patient.InfoContext, patient.WarnContext, patient.ErrorContext,
	} {
		call(ctx, "m")
	}
	if s := patient.Stats(); s.Accepted != 6 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
	late := make(chan error, 1)
	go func() { late <- patient.PostContext(context.Background(), "t", map[string]int{"n": 2}) }()
	for patient.Stats().Accepted != 7 {
		runtime.Gosched()
	}
	for _, l := range []*Logger{l, patient} {
		_ = l.Close(ctx)
		law(t, l.Stats())
	}
	if err := <-late; !errors.Is(err, ErrUndelivered) || !errors.Is(err, ErrClosed) || !errors.Is(err, ErrAccepted) {
		t.Errorf("at Close: %v", err)
	}
}

// TestRefusedAfterClose has what comes after Close counted.
func TestRefusedAfterClose(t *testing.T) {
	l, _ := NewTest(nil)
	for _, l := range []*Logger{opened(t, "discard:", &Options{Shm: noShm}), l} {
		l.Info("m")
		if err := closed(t, l); err != nil {
			t.Fatal(err)
		}
		l.Info("m")
		if err := l.Post("t", map[string]int{"n": 1}); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		s := l.Stats()
		law(t, s)
		if s.Accepted != 1 || s.Refused != 2 || s.RefusedBy["closed"] != 2 {
			t.Errorf("%+v", s)
		}
	}
}
