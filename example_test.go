// SPDX-License-Identifier: Apache-2.0

package spillway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
)

// lines is a destination whose lines are the same each time: text, with nothing but the level
// before the message.
const lines = "stdout:?format=text&flags=level&color=never"

// memory keeps the ring out of /dev/shm, where these examples would adopt what a killed one left.
var memory = &spillway.Options{Tag: "app", Shm: "none"}

func open(destination string, o *spillway.Options) (*spillway.Logger, func()) {
	l, err := spillway.Open(destination, o)
	if err != nil {
		panic(err)
	}
	return l, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
}

// A service opens its logger first and closes it last. That the server is down is no error: events
// wait in the ring, then in Dir.
func Example() {
	l, err := spillway.Open("forward://logs-1.example:24224,logs-2.example", &spillway.Options{
		Tag:  "shop",
		Dir:  filepath.Join(os.TempDir(), "shop-log"),
		Host: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err) // how much is left, and where the next process finds it
		}
	}()
	defer l.Recover()
	slog.SetDefault(slog.New(l.Handler()))

	l.Info("order placed", slog.Int("id", 42))
}

func ExampleOpen() {
	for _, destination := range []string{
		"discard:",
		"forward://127.0.0.1:24224?compress=zstd&ack_timeout=30s",
		"file:///var/log/app.{pid}.jsonl?max_size=100MiB&keep=7&compress=gzip",
		"stderr:?format=text&flags=date,time,micros,shortsource,level",
		"discard:?colour=blue",
		"forward+tls://logs.example?ca=ca.pem&insecure=true",
	} {
		if !strings.HasPrefix(destination, "discard") && !strings.HasPrefix(destination, "forward+tls") {
			continue // these would begin to work
		}
		l, err := spillway.Open(destination, memory)
		if err != nil {
			fmt.Println(err)
			continue
		}
		_ = l.Close(context.Background())
	}
	// Output:
	// spillway: discard:?colour=***: unknown parameter "colour"; discard takes none
	// spillway: forward+tls://logs.example?ca=ca.pem&insecure=true: insecure=true lets every certificate pass, and ca= says which are good: give one
}

// With an empty destination the environment decides: where a program logs to is for who runs it to
// say.
func ExampleOpen_environment() {
	os.Setenv("SPILLWAY_URL", lines)
	defer os.Unsetenv("SPILLWAY_URL")
	l, done := open("", memory)
	defer done()
	l.Info("up")
	// Output:
	// INFO up
}

// What a process leaves behind, because its server is down and it has no time, or because it is
// killed, the next one ships.
func ExampleOpen_adoption() {
	dir, err := os.MkdirTemp("", "spillway")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s") // at which nobody listens: the server is down
	o := &spillway.Options{Name: "shop", Shm: "none", Dir: filepath.Join(dir, "log"), Diagnostics: func(error) {}}

	l, err := spillway.Open("forward+unix://"+socket, o)
	if err != nil {
		panic(err)
	}
	l.Info("order placed")
	// Half of which is for writing to Dir what the server does not take.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	var left *spillway.UndeliveredError
	if errors.As(l.Close(ctx), &left) {
		fmt.Println("left:", left.Events)
	}
	cancel()

	ln, err := net.Listen("unix", socket)
	if err != nil {
		panic(err)
	}
	came := make(chan struct{})
	server := &forward.Server{Handler: forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error {
		fmt.Println("came:", c.Events, "of", c.Tag)
		close(came)
		return nil // stored: the ack goes out
	})}
	go server.Serve(ln)
	defer server.Close()
	for shipped := false; !shipped; { // on a busy machine the first one lets go of it a little later
		_, done := open("forward+unix://"+socket, o)
		done()
		select {
		case <-came:
			shipped = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	// Output:
	// left: 1
	// came: 1 of shop
}

// A file that rotates by size and time, keeps a week, and compresses what is old.
func ExampleOpen_file() {
	dir, err := os.MkdirTemp("", "spillway")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "app.jsonl")
	l, done := open("file:"+filepath.ToSlash(path)+"?max_size=100MiB&every=24h&keep=7&compress=gzip", memory)
	at := time.Date(2026, 11, 21, 2, 3, 4, 5000, time.UTC)
	if err := l.PostWithTime("app.order", at, map[string]any{"id": 42}); err != nil {
		fmt.Println(err)
	}
	done()
	b, _ := os.ReadFile(path)
	fmt.Print(string(b))
	// Output:
	// {"time":"2026-11-21T02:03:04.000005000Z","tag":"app.order","id":42}
}

func ExampleLogger_Info() {
	l, done := open(lines, memory)
	defer done()
	l.Trace("not logged: the level is Info")
	l.Info("order placed", slog.Int("id", 42), slog.Duration("took", 1500*time.Microsecond))
	l.Warn("slow", slog.Group("db", slog.String("host", "db-1"), slog.Int("queries", 7)))
	l.Log(context.Background(), slog.LevelInfo+2, "between Info and Warn")
	// Output:
	// INFO order placed id=42 took=1500000
	// WARN slow db.host=db-1 db.queries=7
	// INFO+2 between Info and Warn
}

func ExampleLogger_With() {
	l, done := open(lines, memory)
	defer done()
	request := l.With(slog.String("request", "7f3a")).WithGroup("cart")
	request.Info("added", slog.Int("items", 2))
	request.Info("left") // the group is empty, so it is not there
	// Output:
	// INFO added request=7f3a cart.items=2
	// INFO left request=7f3a
}

func ExampleLogger_SetLevel() {
	l, done := open(lines, memory)
	defer done()
	l.Debug("not logged")
	l.SetLevel(slog.LevelDebug)
	l.Debug("logged")
	if l.Enabled(spillway.LevelTrace) {
		l.Trace("what takes long to put together", slog.Any("state", nil))
	}
	fmt.Println(l.Level())
	// Unordered output:
	// DEBUG
	// DEBUG logged
}

func ExampleOptions_source() {
	l, events := spillway.NewTest(&spillway.Options{Source: spillway.ShortSource})
	l.Info("here")
	source := events.All()[0].Record["source"].(string)
	fmt.Println(source[:strings.IndexByte(source, ':')])
	// Output:
	// example_test.go
}

func ExampleLogger_Post() {
	type customer struct {
		Name string `json:"name"`
		Mail string `json:"-"`
	}
	type order struct {
		customer          // embedded: its fields become the record's
		ID       int      `log:"id"`
		Coupon   string   `log:"coupon,omitempty"`
		Items    []string `json:"items"`
	}
	l, done := open("stdout:", memory)
	defer done()
	at := time.Date(2026, 11, 21, 2, 3, 4, 0, time.UTC)
	err := l.PostWithTime("shop.order", at, order{customer: customer{Name: "Ann"}, ID: 42, Items: []string{"tea"}})
	fmt.Println(err)
	fmt.Println(l.Post("shop.order", nil))
	// Unordered output:
	// {"time":"2026-11-21T02:03:04.000000000Z","tag":"shop.order","name":"Ann","id":42,"items":["tea"]}
	// <nil>
	// spillway: not a record: <nil>
}

// money says what it is to be in logs.
type money struct{ cents int }

func (m money) LogValue() slog.Value {
	return slog.StringValue(fmt.Sprintf("%d.%02d", m.cents/100, m.cents%100))
}

type node struct{ Next *node }

type broken struct{}

func (*broken) String() string { panic("no") }

// Values are encoded as slog and encoding/json do it. A value that cannot be encoded says so; it
// never takes the call down.
func ExampleLogger_Post_values() {
	l, events := spillway.NewTest(nil)
	n := &node{}
	n.Next = n
	l.Info("values",
		slog.Any("price", money{1250}),
		slog.Any("err", errors.New("refused")),
		slog.Time("at", time.Date(2026, 11, 21, 2, 3, 4, 0, time.UTC)),
		slog.Any("list", []any{1, "two", nil}),
		slog.Any("broken", &broken{}),
		slog.Any("circle", n),
	)
	r := events.All()[0].Record
	for _, key := range []string{"price", "err", "at", "list", "broken", "circle"} {
		fmt.Println(key, r[key])
	}
	// Output:
	// price 12.50
	// err refused
	// at 2026-11-21T02:03:04Z
	// list [1 two <nil>]
	// broken !PANIC: no
	// circle map[Next:!CYCLE]
}

func ExampleLogger_Handler() {
	l, done := open(lines, memory)
	defer done()
	log := slog.New(l.Handler())
	log.Info("order placed", "id", 42)
	log.WithGroup("db").With("host", "db-1").Warn("slow", "queries", 7)
	// Output:
	// INFO order placed id=42
	// WARN slow db.host=db-1 db.queries=7
}

func ExampleLogger_StdLogger() {
	l, done := open(lines, memory)
	defer done()
	std := l.StdLogger(slog.LevelWarn) // for http.Server.ErrorLog and the like
	std.Printf("http: TLS handshake error from %s", "192.0.2.1")
	// Output:
	// WARN http: TLS handshake error from 192.0.2.1
}

func ExampleLogger_Writer() {
	l, events := spillway.NewTest(nil)
	w := l.Writer() // for exec.Cmd.Stdout and the like
	fmt.Fprintf(w, "starting\n{\"port\":80")
	fmt.Fprintf(w, "80}\n")
	for _, e := range events.All() {
		fmt.Println(e.Record)
	}
	// Output:
	// map[message:starting]
	// map[port:8080]
}

func ExampleOptions_replaceAttr() {
	l, done := open(lines, &spillway.Options{
		Shm: "none",
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == "password" {
				return slog.String(a.Key, "***")
			}
			return a
		},
	})
	defer done()
	l.With(slog.String("password", "of With")).Info("login", slog.Group("user", slog.String("password", "of a group")))
	// Output:
	// INFO login password=*** user.password=***
}

type traceKey struct{}

func ExampleOptions_contextAttrs() {
	l, done := open(lines, &spillway.Options{
		Shm: "none",
		ContextAttrs: func(ctx context.Context, attrs []slog.Attr) []slog.Attr {
			if id, ok := ctx.Value(traceKey{}).(string); ok {
				attrs = append(attrs, slog.String("trace_id", id))
			}
			return attrs
		},
	})
	defer done()
	ctx := context.WithValue(context.Background(), traceKey{}, "4bf92f35")
	l.Log(ctx, slog.LevelInfo, "order placed")
	slog.New(l.Handler()).InfoContext(ctx, "order placed")
	// Output:
	// INFO order placed trace_id=4bf92f35
	// INFO order placed trace_id=4bf92f35
}

func ExampleSampling() {
	l, events := spillway.NewTest(&spillway.Options{
		Sample: map[slog.Level]spillway.Sampling{slog.LevelInfo: {First: 2, Thereafter: 50, Every: time.Hour}},
	})
	for range 102 {
		l.Info("cache miss")
		l.Error("not sampled")
	}
	fmt.Println(events.Len()-102, l.Stats().Sampled)
	// Output:
	// 4 98
}

// Errors wait for room, at most MaxWait; all else makes way when ring and disk are full, is
// counted, and told in the log itself.
func ExampleOptions_overflow() {
	dir, err := os.MkdirTemp("", "spillway")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	l, done := open("discard:", &spillway.Options{
		Shm:      "none",
		Dir:      dir,
		RingSize: 8 << 20,
		MaxDisk:  256 << 20,
		Overflow: spillway.OverflowDropNewest,
		Keep:     slog.LevelError,
		MaxWait:  200 * time.Millisecond,
	})
	defer done()
	l.Error("kept")
	s := l.Stats()
	fmt.Println(s.Accepted, s.Refused, s.RefusedBy)
	// Output:
	// 1 0 map[]
}

// With WaitDelivered a call returns when its event is written or acked.
func ExampleOptions_waitDelivered() {
	l, done := open("discard:", &spillway.Options{Shm: "none", WaitDelivered: true, MaxWait: time.Minute})
	defer done()
	l.Info("audit")
	fmt.Println(l.Stats().Delivered)
	// Output:
	// 1
}

func ExampleErrorHandlerFunc() {
	handler := spillway.ErrorHandlerFunc(func(err error, c *forward.Chunk) error {
		fmt.Fprintf(os.Stderr, "%d events of %s cannot be delivered: %v\n", c.Events, c.Tag, err)
		return err // they stay pending; nil would mean: taken
	})
	_, done := open("forward://logs.example", &spillway.Options{Shm: "none", ErrorHandler: handler})
	done()
}

func ExampleFallbackTo() {
	dir, err := os.MkdirTemp("", "spillway")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := "file:" + filepath.ToSlash(filepath.Join(dir, "fallback.jsonl"))
	fallback, closeFallback := open(file, &spillway.Options{Shm: "none"})
	defer closeFallback() // after the logger that falls back on it
	_, done := open("forward://logs.example?breaker=5",
		&spillway.Options{Shm: "none", ErrorHandler: spillway.FallbackTo(fallback)})
	defer done()
	_, err = spillway.Open(file, &spillway.Options{Shm: "none", ErrorHandler: spillway.FallbackTo(fallback)})
	fmt.Println(errors.Is(err, spillway.ErrCycle))
	// Output:
	// true
}

func ExampleFallbackJSON() {
	_, done := open("forward://logs.example",
		&spillway.Options{Shm: "none", ErrorHandler: spillway.FallbackJSON(os.Stderr)})
	done()
}

func ExampleLogger_Subscribe() {
	l, done := open("discard:", memory)
	go func() {
		for e := range l.Subscribe() { // until Close
			fmt.Fprintln(os.Stderr, e.At, e.State, e.Err)
		}
	}()
	done()
}

func ExampleLogger_Flush() {
	l, done := open(lines, memory)
	defer done()
	l.Info("before the upgrade")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(l.Flush(ctx))
	// Output:
	// INFO before the upgrade
	// <nil>
}

func ExampleLogger_Close() {
	l, err := spillway.Open("discard:", memory)
	if err != nil {
		panic(err)
	}
	l.Info("last")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = l.Close(ctx)
	var left *spillway.UndeliveredError
	if errors.As(err, &left) {
		fmt.Println(left.Events, "events are left in", left.Where)
	}
	fmt.Println(err, l.Close(ctx), l.Post("app", map[string]int{"late": 1}))
	// Output:
	// <nil> <nil> spillway: logger closed
}

func ExampleLogger_Fatal() {
	l, done := open(lines, &spillway.Options{Shm: "none", Exit: func(code int) { fmt.Println("exit", code) }})
	defer done()
	l.Fatal("no database", slog.String("host", "db-1"))
	// Output:
	// FATAL no database host=db-1
	// exit 1
}

func ExampleLogger_Recover() {
	l, events := spillway.NewTest(nil)
	func() {
		defer func() { fmt.Println("still panics:", recover()) }()
		defer l.Recover()
		panic("out of tea")
	}()
	e := events.All()[0]
	fmt.Println(e.Level == spillway.LevelFatal, e.Message, e.Record["panic"], e.Record["stack"] != "")
	// Output:
	// still panics: out of tea
	// true panic out of tea true
}

func ExampleLogger_Stats() {
	l, done := open("discard:", memory)
	l.Info("a")
	l.Info("b")
	done()
	s := l.Stats()
	fmt.Println(s.Accepted == s.Delivered+s.HandedOver+s.DeadLettered+s.Dropped+s.Lost+s.Held, s.Accepted)
	// Output:
	// true 2
}

func ExampleDiscard() {
	var l *spillway.Logger // a nil Logger does nothing either
	l.Info("nobody reads this")
	l = spillway.Discard()
	fmt.Println(l.Enabled(spillway.LevelFatal))
	// Output:
	// false
}

func ExampleNewTest() {
	l, events := spillway.NewTest(&spillway.Options{Level: slog.LevelDebug})
	l.Debug("cache miss", slog.String("key", "a"))
	e := events.All()[0]
	fmt.Println(e.Level, e.Message, e.Record["key"])
	// Output:
	// DEBUG cache miss a
}
