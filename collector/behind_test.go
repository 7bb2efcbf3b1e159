// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

// wide is a chunk of n+1 events whose record takes some 64 KiB: the last one has a long text.
func wide(from, n int) *forward.Chunk {
	c := numbered("wide", from, n)
	c.Entries = msgpack.AppendArrayHeader(c.Entries, 2)
	c.Entries = forward.AppendEventTime(c.Entries, 1_700_000_000, 5)
	c.Entries = msgpack.AppendMapHeader(c.Entries, 2)
	c.Entries = msgpack.AppendString(c.Entries, "n")
	c.Entries = msgpack.AppendInt(c.Entries, int64(from+n))
	c.Entries = msgpack.AppendString(c.Entries, "text")
	c.Entries = msgpack.AppendString(c.Entries, strings.Repeat("x", 64<<10))
	c.Events++
	return c
}

// wideLines are the lines of wide.
func wideLines(from, n int) string {
	last := strings.TrimSuffix(numberedLines("wide", from+n, 1), "}\n")
	return numberedLines("wide", from, n) + last + `,"text":"` + strings.Repeat("x", 64<<10) + "\"}\n"
}

// waitStats polls until the picture is as wanted.
func waitStats(t *testing.T, r *running, what string, ok func(s *Stats) bool) Stats {
	t.Helper()
	for limit := time.Now().Add(3 * time.Minute); ; {
		s := r.Stats()
		if ok(&s) {
			return s
		}
		if time.Now().After(limit) {
			t.Fatalf("%s: not so: %+v", what, s.Outputs)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestWhenBehind: an output that takes nothing gives up what has waited longest, tells it, and
// holds up no sender; the other output has all; the laws hold, also over a restart; and what is
// left comes, in order and once, when it works again.
func TestWhenBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		full bool // the limit is the journal
	}{
		{"stdout:?max_behind=1MiB&when_behind=drop", false},
		{"stdout:?max_behind=1MiB&when_behind=dead_letter", false},
		{"stdout:?when_behind=drop", true},
		{"stdout:?when_behind=dead_letter", true},
	} {
		t.Run(c.url, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log := make(messages, 100_000)
			out := &cutLine{err: errors.New("the line is cut")}
			healthy := filepath.Join(dir, "healthy")
			o := &Config{
				Dir: filepath.Join(dir, "data"), Stdout: out, Log: slog.New(slog.NewJSONHandler(log, nil)),
				Outputs: Ends(fileURL(healthy), c.url), Drain: time.Millisecond, JournalBytes: 16 << 20,
			}
			if c.full {
				o.JournalBytes = 2 << 20
			}
			r := run(t, o)
			client := r.client(t)
			const chunks = 60 // of which few fit
			for i := range chunks {
				send(t, client, wide(10*i, 9)) // each waits for its ack: no sender is held up for good
			}
			s := waitStats(t, r, "given up", func(s *Stats) bool {
				o := &s.Outputs[1]
				return s.Outputs[0].Out == 10*chunks && o.Dropped[tooFarBehind]+o.DeadLettered > 0 &&
					(c.full || o.BehindBytes <= 1<<20)
			})
			if strings.Contains(c.url, "=drop") == (s.Outputs[1].DeadLettered > 0) ||
				s.Outputs[1].DeadLettered != s.Letters.Events {
				t.Errorf("%+v, %+v", s.Outputs[1], s.Letters)
			}
			said := log.next(t, map[bool]string{
				true:  "output drops events",
				false: "output makes events dead letters",
			}[strings.Contains(c.url, "=drop")])
			if said["output"] != c.url || said["events"].(float64) == 0 || said["behind_bytes"] == nil {
				t.Error(said)
			}
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			last := r.Stats()
			wantLaws(t, last)
			left := last.Outputs[1].Behind
			if left == 0 || last.Outputs[1].Out > 0 {
				t.Fatalf("nothing is left, or came out: %+v", last.Outputs[1])
			}
			out.mend()
			o.Drain, o.Log, o.JournalBytes = 0, logTo(io.Discard), 16<<20 // with room: nothing more is given up
			r = run(t, o)
			send(t, r.client(t), numbered("t", 0, 5))
			s = waitStats(t, r, "all is out", func(s *Stats) bool { return !s.Counting && s.Outputs[1].Behind == 0 })
			if n := s.Outputs[1]; n.Found != left || n.Out != left+5 || n.Lost()+n.DeadLettered != 0 {
				t.Errorf("left %d; then %+v", left, n)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			var want strings.Builder
			for i := chunks - int(left)/10; i < chunks; i++ {
				want.WriteString(wideLines(10*i, 9))
			}
			want.WriteString(numberedLines("t", 0, 5))
			if out.got.String() != want.String() {
				t.Errorf("%d bytes came, want the last %d events of %d bytes", out.got.Len(), left+5, want.Len())
			}
		})
	}
}

// TestWhenBehindAcks: with acks that wait for delivery, one goes out for what was given up, as the
// operator asked for, and the others when the output works again.
func TestWhenBehindAcks(t *testing.T) {
	t.Parallel()
	log := make(messages, 100_000)
	out := &cutLine{err: errors.New("the line is cut")}
	r := run(t, &Config{
		Dir: t.TempDir(), Ack: AckDelivered, Stdout: out, Log: slog.New(slog.NewJSONHandler(log, nil)),
		Outputs: Ends("stdout:?max_behind=1MiB&when_behind=drop"),
	})
	log.next(t, "an ack will also go out for what this output gives up")
	const chunks = 60
	acked := make(chan error, chunks)
	for i := range chunks {
		client := r.client(t)
		go func() { acked <- client.Send(context.Background(), wide(10*i, 9)) }()
	}
	for i := range chunks / 2 { // many more than are left
		if err := <-acked; err != nil {
			t.Fatalf("ack %d: %v", i, err)
		}
	}
	out.mend()
	for i := range chunks / 2 {
		if err := <-acked; err != nil {
			t.Fatalf("ack %d after it works again: %v", i, err)
		}
	}
	s := waitStats(t, r, "all is done", func(s *Stats) bool { return s.Outputs[0].Behind == 0 })
	if o := s.Outputs[0]; o.Dropped[tooFarBehind] == 0 || o.Out == 0 || o.Out+o.Lost() != 10*chunks {
		t.Errorf("%+v", o)
	}
}

// TestWaited: how long an event has waited is the time since it came, but not that before the
// start.
func TestWaited(t *testing.T) {
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	b := &backlogs{journal: j, store: &store{delivered: newDeliveries(1)}}
	p := &pump{limit: behindLimit{age: time.Hour, text: "1h", when: whenDrop}}
	now := time.Now()
	b.arrivals.marks = []journal.Age{
		{End: 10, Time: now.Add(-3 * time.Hour)},
		{End: 20, Time: now.Add(-50 * time.Minute)},
		{End: 30, Time: now.Add(-30 * time.Minute)},
	}
	b.opened = now.Add(-55 * time.Minute)
	if b.over(p, 0) != nil {
		t.Error("the time before the start counts")
	}
	b.opened = now.Add(-2 * time.Hour)
	enough := b.over(p, 0)
	if enough == nil {
		t.Fatal("an event of three hours ago has not waited an hour, within two")
	}
	for at, want := range map[journal.Position]bool{0: false, 10: false, 20: true, 30: true} {
		if enough(at) != want {
			t.Errorf("at %d: enough %t", at, !want)
		}
	}
	if b.over(p, 10) != nil {
		t.Error("50 minutes are more than an hour")
	}
}

// TestHoldsBesidePlaces: an output holds a full journal if it is the last one, but not while the
// place of one that was removed keeps an earlier segment: that goes first.
func TestHoldsBesidePlaces(t *testing.T) {
	at := func(segment, offset journal.Position) journal.Position { return segment<<32 | offset }
	d := newDeliveries(3)
	d.enter(0, at(3, 10))
	d.enter(1, at(3, 20))
	d.enter(2, at(2, 30))
	wants := func(first, second bool) {
		t.Helper()
		if d.holds(at(3, 10)) != first || d.holds(at(3, 20)) != second {
			t.Errorf("%t %t, want %t %t", !first, !second, first, second)
		}
	}
	wants(false, false)
	d.leave(2, false)
	wants(false, false)
	d.leave(2, true)
	wants(true, false)
	d.enter(2, at(3, 5))
	d.leave(2, false) // to give it up would free nothing
	wants(true, false)
}

// TestBehindBlocks: senders wait for an output that is too far behind, though the journal has room,
// and go on when it is not.
func TestBehindBlocks(t *testing.T) {
	t.Parallel()
	log := make(messages, 100_000)
	out := &cutLine{err: errors.New("the line is cut")}
	url := "stdout:?max_behind=1MiB"
	r := run(t, &Config{
		Dir: t.TempDir(), Outputs: Ends("discard:", url), Stdout: out,
		Log: slog.New(slog.NewJSONHandler(log, nil)),
	})
	client := r.client(t)
	var enough atomic.Bool // the limit is looked at ten times a second: chunks come in between
	var chunks int64       // that were acked; to be read when sent was
	sent := make(chan error, 1)
	go func() {
		var err error
		for err == nil && !enough.Load() {
			if err = client.Send(context.Background(), wide(int(10*chunks), 9)); err == nil {
				chunks++
			}
		}
		sent <- err
	}()
	said := log.next(t, "output too far behind")
	if said["held_by"] != url || said["holds_up"] != "all senders" || said["behind_bytes"].(float64) < 1<<20 {
		t.Error(said)
	}
	if s := r.Stats(); s.Failure == nil || s.Journal.Full {
		t.Errorf("failure %v, full %t", s.Failure, s.Journal.Full)
	}
	enough.Store(true)
	select {
	case err := <-sent:
		t.Fatalf("nobody waits: %v", err)
	case <-time.After(3 * watchEvery):
	}
	out.mend()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	waitStats(t, r, "all is out", func(s *Stats) bool { return s.Outputs[1].Out == 10*chunks })
}
