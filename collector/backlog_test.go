// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// cutLine is standard output that refuses while err is set.
type cutLine struct {
	mu  sync.Mutex
	err error
	got strings.Builder
}

func (c *cutLine) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	return c.got.Write(p)
}

func (c *cutLine) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = nil
}

// messages are lines of a JSON log, as they come.
type messages chan map[string]any

func (m messages) Write(p []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	m <- line
	return len(p), nil
}

// next returns the next message of that text.
func (m messages) next(t *testing.T, text string) map[string]any {
	t.Helper()
	limit := time.After(4 * time.Minute)
	for {
		select {
		case line := <-m:
			if line["msg"] == text {
				return line
			}
		case <-limit:
			t.Fatalf("no message %q", text)
		}
	}
}

// TestBrokenOutput: an output that fails says so once, with what it holds up, its backlog is in
// Stats, and the end of it is told.
func TestBrokenOutput(t *testing.T) {
	for _, c := range []struct {
		ack  Ack
		want string
	}{{AckSynced, "no sender"}, {AckDelivered, "acks: they wait for delivery"}} {
		log := make(messages, 1000)
		out := &cutLine{err: errors.New("the line is cut")}
		r := run(t, &Config{Dir: t.TempDir(), Ack: c.ack, Stdout: out, Log: slog.New(slog.NewJSONHandler(log, nil))})
		client := r.client(t)
		sent := make(chan error, 1)
		go func() { sent <- client.Send(context.Background(), numbered("t", 0, 10)) }()
		broken := log.next(t, "output broken")
		if broken["output"] != "stdout:" || broken["holds_up"] != c.want || broken["error"] != "the line is cut" ||
			broken["next_try_in"] != float64(retryPause) {
			t.Errorf("%s: %v", c.ack, broken)
		}
		if n, ok := broken["behind"].(float64); !ok || n != 10 {
			t.Errorf("%s: behind %v", c.ack, broken["behind"])
		}
		o := r.Stats().Outputs[0]
		if o.Behind != 10 || o.BehindBytes < int64(len(numbered("t", 0, 10).Entries)) || o.Failure == nil ||
			o.Failure.Err.Error() != "the line is cut" {
			t.Errorf("%s: %+v, %+v", c.ack, o, o.Failure)
		}
		tries := o.Failure.Tries
		for limit := time.After(4 * time.Minute); tries < 5; {
			select {
			case <-limit:
				t.Fatal("it is not tried again")
			case line := <-log:
				if line["msg"] == "output broken" {
					t.Errorf("told again after a moment: %v", line)
				}
			case <-time.After(time.Millisecond):
				tries = r.Stats().Outputs[0].Failure.Tries
			}
		}
		if c.ack == AckSynced { // the ack does not wait for the output
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
		select {
		case err := <-sent:
			t.Errorf("%s: acked before the output has confirmed: %v", c.ack, err)
		default:
		}
		out.mend()
		if works := log.next(t, "output works again"); works["output"] != "stdout:" || works["tries"].(float64) < 5 {
			t.Errorf("%s: %v", c.ack, works)
		}
		if c.ack == AckDelivered {
			if err := <-sent; err != nil {
				t.Error(err)
			}
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		o = r.Stats().Outputs[0]
		if o.Behind != 0 || o.BehindBytes != 0 || o.BehindFor != 0 || o.Failure != nil ||
			o.Bytes != int64(out.got.Len()) {
			t.Errorf("%s: at the end %+v; %d bytes written", c.ack, o, out.got.Len())
		}
	}
}

// TestFullJournalNamesTheOutput: who looks why senders wait is told which output holds the journal.
func TestFullJournalNamesTheOutput(t *testing.T) {
	log := make(messages, 1000)
	out := &cutLine{err: errors.New("the line is cut")}
	r := run(t, &Config{
		Dir: t.TempDir(), JournalBytes: 1 << 20, Outputs: Ends("discard:", "stdout:"), Stdout: out,
		Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	client := r.client(t)
	send(t, client, numbered("t", 0, 1))
	for r.Stats().Outputs[1].Failure == nil { // else both outputs are as far behind, and none fails
		runtime.Gosched()
	}
	sent := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			err = client.Send(ctx, numbered("t", i, 5000))
		}
		sent <- err
	}()
	full := log.next(t, "journal full")
	if full["held_by"] != "stdout:" || full["holds_up"] != "all senders" {
		t.Error(full)
	}
	s := r.Stats()
	if s.Failure == nil || s.Journal.Used < s.Journal.MaxBytes/2 || s.Journal.Used > s.Journal.MaxBytes {
		t.Errorf("failure %v, used %d of %d", s.Failure, s.Journal.Used, s.Journal.MaxBytes)
	}
	out.mend()
	cancel()
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	log.next(t, "journal works again")
}

// TestNoOutputHoldsAFullDisk: where no output is behind, none is named.
func TestNoOutputHoldsAFullDisk(t *testing.T) {
	r := run(t, &Config{Dir: t.TempDir(), Outputs: Ends("discard:"), Ack: AckDelivered})
	send(t, r.client(t), numbered("t", 0, 10))
	if said := r.store.holder(); said != nil {
		t.Errorf("%v holds the journal, and is not behind", said)
	}
}

// TestBacklogAfterRestart: what was left is as old as it was, not as young as the process.
func TestBacklogAfterRestart(t *testing.T) {
	dir := t.TempDir()
	out := &cutLine{err: errors.New("the line is cut")}
	r := run(t, &Config{Dir: dir, Stdout: out, Drain: time.Millisecond, Log: logTo(io.Discard)})
	send(t, r.client(t), numbered("t", 0, 10))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "journal", "seg-*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(segments, err)
	}
	for _, name := range segments {
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	r = run(t, &Config{Dir: dir, Stdout: out, Drain: time.Millisecond, Log: logTo(io.Discard)})
	for limit := time.After(4 * time.Minute); r.Stats().Counting; {
		select {
		case <-limit:
			t.Fatal("what was found is not counted")
		case <-time.After(time.Millisecond):
		}
	}
	if o := r.Stats().Outputs[0]; o.Behind != 10 || o.BehindFor < time.Hour || o.BehindFor > 2*time.Hour {
		t.Errorf("%d events behind for %v, want 10 for an hour", o.Behind, o.BehindFor)
	}
}

// TestNamesKeepPlaces: outputs with names go on where each of them stood, though their URLs and
// their order change.
func TestNamesKeepPlaces(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	out := &cutLine{err: errors.New("the line is cut")}
	o := &Config{Dir: filepath.Join(dir, "data"), Stdout: out, Drain: time.Millisecond, Log: logTo(io.Discard)}
	o.Outputs = []End{{Name: "a", URL: fileURL(one)}, {Name: "b", URL: "stdout:"}}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 5))
	for limit := time.After(4 * time.Minute); r.Stats().Outputs[0].Behind > 0; {
		select {
		case <-limit:
			t.Fatal("the file is not written")
		case <-time.After(time.Millisecond):
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	out.mend()
	o.Drain, o.Outputs = 0, []End{{Name: "b", URL: "stdout:?format=json"}, {Name: "a", URL: fileURL(two)}}
	r = run(t, o)
	send(t, r.client(t), numbered("t", 5, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, one, numberedLines("t", 0, 5))
	wantFile(t, two, numberedLines("t", 5, 5))
	if got, want := out.got.String(), numberedLines("t", 0, 10); got != want {
		t.Errorf("stdout has %s", got)
	}
}

// TestGivenName: an output that gets a name goes on where it stood without one, though another is
// far behind.
func TestGivenName(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	out := &cutLine{err: errors.New("the line is cut")}
	o := &Config{
		Dir: filepath.Join(dir, "data"), Stdout: out, Drain: time.Millisecond, Log: logTo(io.Discard),
		Outputs: Ends(fileURL(one), "stdout:"),
	}
	r := run(t, o)
	send(t, r.client(t), numbered("t", 0, 5))
	for limit := time.After(4 * time.Minute); r.Stats().Outputs[0].Behind > 0; {
		select {
		case <-limit:
			t.Fatal("the file is not written")
		case <-time.After(time.Millisecond):
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	out.mend()
	o.Drain, o.Outputs = 0, []End{{Name: "a", URL: fileURL(one)}, {URL: "stdout:"}}
	r = run(t, o)
	send(t, r.client(t), numbered("t", 5, 5))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, one, numberedLines("t", 0, 10))
	if got, want := out.got.String(), numberedLines("t", 0, 10); got != want {
		t.Errorf("stdout has %s", got)
	}
}
