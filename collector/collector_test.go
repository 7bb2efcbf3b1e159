// SPDX-License-Identifier: Apache-2.0

package collector

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

// running is a Collector that runs until the test ends or stop is called.
type running struct {
	*Collector
	cancel context.CancelFunc
	done   chan error
}

func run(t *testing.T, o *Config) *running {
	t.Helper()
	if o.Inputs == nil {
		o.Inputs = Ends("forward://127.0.0.1:0")
	}
	if o.Log == nil {
		o.Log = logTo(testWriter{t})
	}
	if o.Drain == 0 {
		o.Drain = time.Minute // on a slow machine, too, all is handed on before the end
	}
	c, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Collector: c, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-r.done
		wantLaws(t, c.Stats())
	})
	return r
}

// wantLaws checks the laws of Stats, which hold whenever nothing is on its way.
func wantLaws(t *testing.T, s Stats) {
	t.Helper()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if s.Counting {
		t.Error("what the journal held at the start is not counted")
	}
}

// stop ends the run as a signal would.
func (r *running) stop() error {
	r.cancel()
	err := <-r.done
	r.done <- err
	return err
}

func (r *running) client(t *testing.T) *forward.Client {
	t.Helper()
	addr := r.Addrs()[0]
	c := &forward.Client{Network: addr.Network(), Address: addr.String()}
	t.Cleanup(func() { c.Close() })
	return c
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// numbered returns a chunk of entries {"n": from}, {"n": from+1}, …
func numbered(tag string, from, n int) *forward.Chunk {
	c := &forward.Chunk{Tag: tag, ID: forward.NewID(), UniqueID: true, Events: n}
	for i := range n {
		c.Entries = msgpack.AppendArrayHeader(c.Entries, 2)
		c.Entries = forward.AppendEventTime(c.Entries, 1_700_000_000, 5)
		c.Entries = msgpack.AppendMapHeader(c.Entries, 1)
		c.Entries = msgpack.AppendString(c.Entries, "n")
		c.Entries = msgpack.AppendInt(c.Entries, int64(from+i))
	}
	return c
}

// big returns a chunk of one event of a mebibyte.
func big() *forward.Chunk {
	c := &forward.Chunk{Tag: "big", ID: forward.NewID(), UniqueID: true, Events: 1}
	c.Entries = msgpack.AppendArrayHeader(nil, 2)
	c.Entries = forward.AppendEventTime(c.Entries, 1_700_000_000, 5)
	c.Entries = msgpack.AppendMapHeader(c.Entries, 1)
	c.Entries = msgpack.AppendString(c.Entries, "text")
	c.Entries = msgpack.AppendString(c.Entries, strings.Repeat("x", 1<<20))
	return c
}

func numberedLines(tag string, from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"time":"2023-11-14T22:13:20.000000005Z","tag":%q,"n":%d}`+"\n", tag, from+i)
	}
	return b.String()
}

func send(t *testing.T, c *forward.Client, chunks ...*forward.Chunk) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	for _, chunk := range chunks {
		if err := c.Send(ctx, chunk); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

func fileURL(path string) string { return "file://" + filepath.ToSlash(path) }

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds %d bytes, want %d:\n%.2000s\nwant\n%.2000s", path, len(got), len(want), got, want)
	}
}

func TestEventsReachAllOutputs(t *testing.T) {
	dir := t.TempDir()
	var out syncBuffer
	r := run(t, &Config{
		Dir:     filepath.Join(dir, "data"),
		Outputs: Ends(fileURL(filepath.Join(dir, "{tag}.jsonl")), "stdout:", "discard:"),
		Stdout:  &out,
	})
	c := r.client(t)
	send(t, c, numbered("a", 0, 100), numbered("b", 100, 1), numbered("a", 200, 10))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	a, b := numberedLines("a", 0, 100)+numberedLines("a", 200, 10), numberedLines("b", 100, 1)
	wantFile(t, filepath.Join(dir, "a.jsonl"), a)
	wantFile(t, filepath.Join(dir, "b.jsonl"), b)
	if want := numberedLines("a", 0, 100) + b + numberedLines("a", 200, 10); out.String() != want {
		t.Errorf("standard output: %.300s", out.String())
	}
}

// TestConservation: every event that arrives is accounted for.
func TestConservation(t *testing.T) {
	dir := t.TempDir()
	r := run(t, &Config{Dir: dir, Outputs: Ends("discard:"), Ack: AckDelivered})
	same := numbered("t", 0, 7)
	send(t, r.client(t), same, numbered("t", 7, 3))
	send(t, r.client(t), same)

	// One good, one invalid, one nil record, with an ack.
	raw := []byte("\x93\xa1t\x93\x92\x01\x80\x92\xa1x\x80\x92\x01\xc0\x81\xa5chunk\xa1z")
	conn, err := net.Dial("tcp", r.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(raw); err != nil {
		t.Fatal(err)
	}
	ack := make([]byte, 7)
	if _, err := io.ReadFull(conn, ack); err != nil || string(ack) != "\x81\xa3ack\xa1z" {
		t.Fatalf("ack: % x, %v", ack, err)
	}

	s := r.Stats()
	if s.Stored != 11 || s.Repeated != 7 || s.Invalid != 1 || s.Skipped != 1 {
		t.Errorf("stored %d, repeated %d, invalid %d, skipped %d", s.Stored, s.Repeated, s.Invalid, s.Skipped)
	}
	if s.In != 20 {
		t.Errorf("in %d, want 20", s.In)
	}
	wantLaws(t, s)
	if o := s.Outputs[0]; o.Out != s.Stored || o.Behind != 0 {
		t.Errorf("out %d, behind %d, stored %d, all of it delivered", o.Out, o.Behind, s.Stored)
	}
}

// TestStopHandsOnWhatAskedForNoAck: what was taken in without an ack is handed on before the end,
// though nobody had it synced.
func TestStopHandsOnWhatAskedForNoAck(t *testing.T) {
	for range 10 {
		dir := t.TempDir()
		path := filepath.Join(dir, "out.jsonl")
		r := run(t, &Config{Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(path))})
		c := r.client(t)
		c.NoAck = true
		send(t, c, numbered("t", 0, 5))
		for r.Stats().Stored < 5 {
			runtime.Gosched()
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, numberedLines("t", 0, 5))
	}
}

func TestRestartContinues(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.jsonl")
	o := &Config{Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(path))}
	chunks := []*forward.Chunk{numbered("t", 0, 5), numbered("t", 5, 5), numbered("t", 10, 5)}
	for i := range chunks {
		r := run(t, o)
		c := r.client(t)
		send(t, c, chunks[:i+1]...) // what went before is repeated
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	wantFile(t, path, numberedLines("t", 0, 15))
}

// TestExchangedOutput: an output that takes the place of another one begins
// where that one stood.
func TestExchangedOutput(t *testing.T) {
	dir := t.TempDir()
	o := &Config{Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(filepath.Join(dir, "one")))}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	o.Outputs = Ends(fileURL(filepath.Join(dir, "two")))
	r = run(t, o)
	send(t, r.client(t), numbered("t", 5, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "one"), numberedLines("t", 0, 5))
	wantFile(t, filepath.Join(dir, "two"), numberedLines("t", 5, 5))
}

// TestExchangedOutputBehind: an output that takes the place of one that was behind gets what that
// one was left.
func TestExchangedOutputBehind(t *testing.T) {
	dir := t.TempDir()
	o := &Config{
		Dir: filepath.Join(dir, "data"), Outputs: Ends("stdout:"), Stdout: &cutLine{err: errors.New("the line is cut")},
		Drain: time.Millisecond, Log: logTo(io.Discard),
	}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	o.Drain, o.Outputs = 0, Ends(fileURL(filepath.Join(dir, "two")))
	r = run(t, o)
	send(t, r.client(t), numbered("t", 5, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "two"), numberedLines("t", 0, 10))
}

// TestFailedStartKeepsPlaces: a start that comes to nothing takes no output's place in the journal
// away.
func TestFailedStartKeepsPlaces(t *testing.T) {
	dir := t.TempDir()
	o := &Config{Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(filepath.Join(dir, "one")))}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	wrong := &Config{Dir: o.Dir, Outputs: Ends("discard:"), Inputs: Ends("forward://" + l.Addr().String())}
	if _, err := Open(wrong); err == nil {
		t.Fatal("it listens where somebody else does")
	}
	j, err := journal.Open(filepath.Join(o.Dir, "journal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if names := j.Cursors(); !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "file-") }) {
		t.Errorf("%q", names)
	}
}

// gate is a writer that blocks until it is opened.
type gate struct {
	open chan struct{}
	syncBuffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.syncBuffer.Write(p)
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestFullJournalHoldsAcksBack: nothing is acked that is not stored, and all of
// it is once there is room.
func TestFullJournalHoldsAcksBack(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	var log syncBuffer
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("stdout:"), Stdout: g, JournalBytes: 48 << 20,
		Log: logTo(&log),
	})
	c := r.client(t)
	const chunks = 80
	acked := make(chan error, chunks)
	go func() {
		for range chunks {
			acked <- c.Send(t.Context(), big())
		}
	}()
	left := chunks
	await := func(d time.Duration) {
		select {
		case err := <-acked:
			if err != nil {
				t.Fatal(err)
			}
			left--
		case <-time.After(d):
		}
	}
	for !strings.Contains(log.String(), "journal full") {
		await(time.Millisecond)
		if left == 0 {
			t.Fatal("everything was acked, the journal was never full")
		}
	}
	close(g.open)
	for left > 0 {
		await(time.Minute)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(g.String(), "\n"); n != chunks {
		t.Errorf("%d lines, want %d", n, chunks)
	}
}

// TestHangingOutput: Run returns although an output does not, and says which.
func TestHangingOutput(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("discard:", "stdout:"), Stdout: g,
		Drain: 50 * time.Millisecond,
	})
	send(t, r.client(t), numbered("t", 0, 1))
	defer close(g.open)
	if err := r.stop(); err == nil || !strings.HasPrefix(err.Error(), "stdout:: the output does not return") {
		t.Errorf("got %v", err)
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	run(t, &Config{Dir: dir, Outputs: Ends("discard:")})
	_, err := Open(&Config{Dir: dir, Outputs: Ends("discard:"), Inputs: Ends("forward://127.0.0.1:0")})
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v", err)
	}
}

func TestMistakesAreToldBeforeAnythingIsOpened(t *testing.T) {
	for _, o := range []*Config{
		{Outputs: Ends("stdout:", "stdout:")},
		{Outputs: Ends("file:out.jsonl", "discard:", "file:./out.jsonl")},
		{Outputs: Ends("file:///tmp//{tag}.jsonl", "file:///tmp/{tag}.jsonl")},
		{Outputs: Ends("kafka://h/t")},
		// One file of a cursor on some systems.
		{Outputs: []End{{Name: "a", URL: "discard:"}, {Name: "A", URL: "stdout:"}}},
		{Outputs: Ends("stdout:?colour=red")},
		{Ack: "maybe"},
	} {
		o.Dir = filepath.Join(t.TempDir(), "data")
		o.Inputs = Ends("forward://127.0.0.1:0")
		if c, err := Open(o); err == nil {
			t.Errorf("%+v was opened", o)
			c.Close()
		}
		if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v: the data directory was made", o)
		}
	}
}
