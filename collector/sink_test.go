// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
)

// fake is an Input that a test drives.
type fake struct {
	run      func(ctx context.Context, sink Sink) error
	received Received
	closed   atomic.Int32
	listens  net.Addr
}

func (f *fake) Run(ctx context.Context, sink Sink) error { return f.run(ctx, sink) }

func (f *fake) Stats() Received { return f.received }

func (f *fake) Close() error {
	f.closed.Add(1)
	return nil
}

func (f *fake) Addr() net.Addr { return f.listens }

// fakes are inputs with URLs such as fake:NAME.
func fakes(inputs map[string]*fake) map[string]InputKind {
	return map[string]InputKind{"fake": func(u *URL, p *Params) (func(*InputEnv) (Input, error), error) {
		p.String("x", "")
		f := inputs[u.Path]
		if f == nil {
			return nil, u.Errorf("no such input")
		}
		return func(*InputEnv) (Input, error) { return f, nil }, nil
	}}
}

// handed is a fake that hands its sink to the test and waits for its end.
func handed() (f *fake, sinks chan Sink) {
	sinks = make(chan Sink, 1)
	return &fake{run: func(ctx context.Context, sink Sink) error {
		sinks <- sink
		<-ctx.Done()
		return ctx.Err()
	}}, sinks
}

func offer(t *testing.T, s Sink, position []byte, chunks ...*forward.Chunk) {
	t.Helper()
	offerOn(t, 0, s, position, chunks...)
}

// offerOn is offer on a connection.
func offerOn(t *testing.T, conn uint64, s Sink, position []byte, chunks ...*forward.Chunk) {
	t.Helper()
	durable, err := s.Store(forward.WithSender(t.Context(), &forward.Sender{Conn: conn}), chunks, position)
	if err == nil {
		err = durable(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestForeignInput: what comes by an input of another package reaches the outputs, is accounted
// for, and what comes again is recognised by its id.
func TestForeignInput(t *testing.T) {
	for _, ack := range []Ack{AckJournaled, AckSynced, AckDelivered} {
		t.Run(string(ack), func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "out.jsonl")
			f, sinks := handed()
			f.received = Received{Bytes: 100, Connections: 2, Skipped: 3, Invalid: 4, Refused: 5}
			f.listens = &net.TCPAddr{Port: 7}
			r := run(t, &Config{
				Dir: filepath.Join(dir, "data"), Ack: ack, Outputs: Ends(fileURL(out)),
				Inputs:     []End{{URL: "forward://127.0.0.1:0"}, {Name: "in", URL: "fake:a?x=1"}},
				InputKinds: fakes(map[string]*fake{"a": f}),
			})
			s := <-sinks
			plain := numbered("t", 0, 2)
			plain.ID = nil
			same := numbered("t", 2, 1)
			offer(t, s, nil, plain, same)
			offer(t, s, nil, plain)
			offerOn(t, 1, s, nil, same.Clone())
			send(t, r.client(t), same) // from wherever: the id is Spillway's own
			if p := s.Position(); p != nil {
				t.Errorf("there is a position: %q", p)
			}
			if a := r.Addrs(); len(a) != 2 || a[1] != f.listens {
				t.Error(a)
			}
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			wantFile(t, out, numberedLines("t", 0, 3)+numberedLines("t", 0, 2))
			n := r.Stats().Inputs[1]
			want := InputStats{
				Name: "in", URL: "fake:a?x=1", Bytes: 100, Connections: 2,
				Counts: Counts{
					In: 18, Stored: 5, Repeated: 1, Skipped: 3, Invalid: 4, Refused: 5, Chunks: 4,
					StoredChunks: 3, RepeatedChunks: 1,
				},
			}
			if fmt.Sprint(n) != fmt.Sprint(want) {
				t.Errorf("got  %+v\nwant %+v", n, want)
			}
			if n := f.closed.Load(); n != 1 {
				t.Errorf("closed %d times", n)
			}
			if slices.Contains(r.journalCursors(t), positionsCursor) {
				t.Error("there is a cursor of positions without a position")
			}
		})
	}
}

// TestForeignInputLarge: an event that is too large is told under its input's name, wherever it
// comes in.
func TestForeignInputLarge(t *testing.T) {
	log := make(messages, 1000)
	f, sinks := handed()
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("discard:"), MaxEvent: 10, Log: slog.New(slog.NewJSONHandler(log, nil)),
		Inputs: []End{{Name: "in", URL: "fake:a"}}, InputKinds: fakes(map[string]*fake{"a": f}),
	})
	offer(t, <-sinks, nil, numbered("t", 0, 1))
	if bad := log.next(t, "bad input"); bad["code"] != "peer-too-large-event" || bad["input"] != "in" {
		t.Errorf("%v", bad)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := r.Stats().Inputs[0].Oversize; n != 1 {
		t.Errorf("%d events are too large, want 1", n)
	}
}

// journalCursors are those in the data directory.
func (r *running) journalCursors(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.config.Dir, "journal", "cursor-*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = strings.TrimPrefix(filepath.Base(names[i]), "cursor-")
	}
	return names
}

// TestSinkChecks: a chunk that is none is refused, and nothing of its group is stored.
func TestSinkChecks(t *testing.T) {
	f, sinks := handed()
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("discard:"), Inputs: Ends("fake:a"),
		InputKinds: fakes(map[string]*fake{"a": f}),
	})
	s := <-sinks
	for name, c := range map[string]*forward.Chunk{
		"there is none":       nil,
		"and it says 1":       {Tag: "t", Events: 1},
		"and it says 3":       {Tag: "t", Entries: numbered("t", 0, 2).Entries, Events: 3},
		"an entry that is no": {Tag: "t", Entries: []byte("hello"), Events: 1},
		"entry at byte":       {Tag: "t", Entries: numbered("t", 0, 1).Entries[:12], Events: 1},
		"the tag has 1025":    {Tag: strings.Repeat("t", 1025), Entries: numbered("t", 0, 1).Entries, Events: 1},
	} {
		_, err := s.Store(t.Context(), []*forward.Chunk{numbered("t", 0, 1), c}, nil)
		if !errors.Is(err, forward.ErrMalformed) || !strings.Contains(err.Error(), "chunk 1 of 2: ") ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Store(t.Context(), nil, make([]byte, MaxPosition+1)); err == nil {
		t.Error("a position that is too long was taken")
	}
	mixed := numbered("t", 0, 1)
	mixed.ID = nil
	if _, err := s.Store(t.Context(), []*forward.Chunk{numbered("t", 0, 1), mixed}, []byte("p")); err == nil {
		t.Error("a group with a position of which only some have ids was taken")
	}
	if n := r.Stats(); n.In != 0 || n.RefusedMessages != 6 {
		t.Errorf("in %d, %d refused", n.In, n.RefusedMessages)
	}
}

// TestInputFails: an input that ends by itself ends the collector, with an error that names it;
// what was stored is handed on.
func TestInputFails(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	for i, tt := range []struct {
		err  error
		want string
	}{{errors.New("no route"), "fake:a: no route"}, {errors.New("no disk"), "fake:a: no disk"}} {
		f := &fake{run: func(ctx context.Context, s Sink) error {
			_, err := s.Store(ctx, []*forward.Chunk{numbered("t", i, 1)}, nil)
			return errors.Join(err, tt.err)
		}}
		c, err := Open(&Config{
			Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(out)),
			Inputs:     Ends("forward://127.0.0.1:0", "fake:a"),
			InputKinds: fakes(map[string]*fake{"a": f}), Log: logTo(testWriter{t}), Drain: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context()); err == nil || err.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		wantFile(t, out, numberedLines("t", 0, i+1))
	}
}

// TestInputHangs: an input that does not return is left behind, and told; its sink takes nothing.
func TestInputHangs(t *testing.T) {
	let, ended := make(chan struct{}), make(chan error)
	f := &fake{run: func(ctx context.Context, s Sink) error {
		<-ctx.Done()
		<-let
		_, err := s.Store(context.Background(), []*forward.Chunk{numbered("t", 0, 1)}, []byte("p"))
		ended <- err
		return nil
	}}
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("discard:"), Inputs: Ends("fake:a"),
		InputKinds: fakes(map[string]*fake{"a": f}), Drain: 50 * time.Millisecond,
	})
	if err := r.stop(); !errors.Is(err, errInputHangs) || !strings.HasPrefix(err.Error(), "fake:a: ") {
		t.Errorf("got %v", err)
	}
	close(let)
	if err := <-ended; !errors.Is(err, errTakesNothing) {
		t.Errorf("got %v", err)
	}
	if f.closed.Load() != 0 {
		t.Error("an input that runs was closed")
	}
}

// TestInputDrains: an input has time after ctx to store what it has begun.
func TestInputDrains(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	f := &fake{run: func(ctx context.Context, s Sink) error {
		<-ctx.Done()
		durable, err := s.Store(context.Background(), []*forward.Chunk{numbered("t", 0, 1)}, nil)
		if err != nil {
			return err
		}
		return durable(context.Background())
	}}
	r := run(t, &Config{
		Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(out)), Inputs: Ends("fake:a"),
		InputKinds: fakes(map[string]*fake{"a": f}), Ack: AckDelivered,
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, out, numberedLines("t", 0, 1))
}

// TestForeignInputNotRun: what was opened is closed where the start comes to nothing.
func TestForeignInputNotRun(t *testing.T) {
	f, _ := handed()
	kinds := fakes(map[string]*fake{"a": f})
	outputs := map[string]OutputKind{"away": func(*URL, *Params) (*OutputPlan, error) {
		return &OutputPlan{Open: func(*OutputEnv) (Output, error) { return nil, errors.New("missing") }}, nil
	}}
	for want, o := range map[string]*Config{
		"missing":            {Inputs: Ends("fake:a"), Outputs: Ends("away:")},
		"given twice":        {Inputs: Ends("fake:a", "fake:a?x=1")},
		"no such input":      {Inputs: Ends("fake:b")},
		"unknown parameter":  {Inputs: Ends("fake:a?y=1")},
		"forward://host:por": {Inputs: Ends("stdout:")},
	} {
		o.Dir, o.InputKinds, o.OutputKinds, o.Log = filepath.Join(t.TempDir(),
			"data"), kinds, outputs, logTo(testWriter{t})
		before := f.closed.Load()
		c, err := Open(o)
		if err == nil {
			t.Errorf("%s: it was opened", want)
			c.Close()
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if n := f.closed.Load() - before; want == "missing" && n != 1 {
			t.Errorf("closed %d times", n)
		}
	}
}

// TestSinkWaitsForRoom: a full journal holds an input with positions up, and lets it go on: its
// cursor does not keep the room that it waits for.
func TestSinkWaitsForRoom(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	var log syncBuffer
	f, sinks := handed()
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("stdout:"), Stdout: g, JournalBytes: 48 << 20, Log: logTo(&log),
		Inputs: Ends("fake:a"), InputKinds: fakes(map[string]*fake{"a": f}),
	})
	s := <-sinks
	const chunks = 80
	stored := make(chan error, 1)
	go func() {
		for i := range chunks {
			c := big()
			c.ID = nil
			if _, err := s.Store(t.Context(), []*forward.Chunk{c}, []byte{byte(i)}); err != nil {
				stored <- err
				return
			}
		}
		stored <- nil
	}()
	for !strings.Contains(log.String(), "journal full") {
		select {
		case err := <-stored:
			t.Fatal("the journal was never full: ", err)
		case <-time.After(time.Millisecond):
		}
	}
	close(g.open)
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(g.String(), "\n"); n != chunks {
		t.Errorf("%d lines, want %d", n, chunks)
	}
}

// TestSinkJoins: chunks without ids that come with a position are one record where their tags allow
// it, and the bytes that were lent are left as they were.
func TestSinkJoins(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	f, sinks := handed()
	r := run(t, &Config{
		Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(out)), Inputs: Ends("fake:a"),
		InputKinds: fakes(map[string]*fake{"a": f}),
	})
	s := <-sinks
	var chunks []*forward.Chunk
	for i, tag := range []string{"a", "a", "a", "b", "a"} {
		c := numbered(tag, i, 1)
		c.ID, c.UniqueID = nil, false
		c.Entries = append(c.Entries, "lent"...)[:len(c.Entries)]
		chunks = append(chunks, c)
	}
	offer(t, s, []byte("at"), chunks...)
	offer(t, s, nil, chunks...)
	for _, c := range chunks {
		if rest := c.Entries[len(c.Entries) : len(c.Entries)+4]; string(rest) != "lent" {
			t.Errorf("behind what was lent stands %q", rest)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := r.Stats().Inputs[0]; n.StoredChunks != 3+5 || n.Stored != 10 {
		t.Errorf("%+v", n)
	}
	lines := numberedLines("a", 0, 3) + numberedLines("b", 3, 1) + numberedLines("a", 4, 1)
	wantFile(t, out, lines+lines)
}
