// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/journal"
)

// sink is a destination that outlives the outputs opened to it.
type sink struct {
	fail    func(op string) error // called for each operation
	durable []string              // tags, as of the last durable flush
	opened  int
	reached chan struct{} // closed when durable has all
	want    int
}

// sinkOutput is one opening of a sink.
type sinkOutput struct {
	*sink
	pending []string
}

func (o *sinkOutput) take(_ context.Context, c *forward.Chunk) (int64, error) {
	if err := o.fail("take"); err != nil {
		return 0, err
	}
	o.pending = append(o.pending, c.Tag)
	return 1, nil
}

func (o *sinkOutput) flush(durable bool) ([]byte, error) {
	if err := o.fail(fmt.Sprintf("flush %v", durable)); err != nil {
		return nil, err
	}
	if durable {
		o.durable = append(o.durable, o.pending...)
		o.pending = nil
		if len(o.durable) == o.want {
			close(o.reached)
		}
	}
	return nil, nil
}

func (o *sinkOutput) close() error { return nil }

// TestPumpGoesOnAfterErrors: each operation fails once in a while, some so that
// the output must be opened again; each chunk arrives once all the same.
func TestPumpGoesOnAfterErrors(t *testing.T) {
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var want []string
	for i := range 20 {
		c := numbered(fmt.Sprint("tag", i), i, 1)
		want = append(want, c.Tag)
		if _, err := j.Append(c.AppendHead(nil), c.Entries, c.AppendTail(nil)); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := j.Reader("sink")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	s := &sink{want: len(want), reached: make(chan struct{})}
	s.fail = func(op string) error {
		calls[op]++
		switch fmt.Sprint(op, calls[op]) {
		case "take7", "flush true1":
			return fmt.Errorf("broken for good: %w", errReopen)
		case "take12", "flush false1", "flush true2":
			return errors.New("not now")
		}
		return nil
	}
	p := &pump{
		name: "sink", reader: reader, eager: true, confirm: func(int, journal.Position) {}, holding: func() holding { return holding{} },
		reporter: newReporter(logTo(testWriter{t})),
		open: func() (output, error) {
			s.opened++
			if s.opened == 2 {
				return nil, errors.New("not yet")
			}
			return &sinkOutput{sink: s}, nil
		},
	}
	p.committed, _ = reader.Committed()
	p.taken = p.committed
	if p.output, err = p.open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.run(ctx, context.Background()) }()
	select {
	case <-s.reached:
	case <-time.After(time.Minute):
		t.Error("not everything arrived")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !slices.Equal(s.durable, want) {
		t.Errorf("got %v, want %v", s.durable, want)
	}
	if s.opened < 4 {
		t.Errorf("opened %d times", s.opened)
	}
}

// TestOutputsGiveLargeBuffersBack: a large event does not leave its memory behind.
func TestOutputsGiveLargeBuffersBack(t *testing.T) {
	large := big()
	for range 2 {
		large.Entries = append(large.Entries, large.Entries...)
	}
	set, err := files.Open(filepath.Join(t.TempDir(), "out"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	file := &fileOutput{set: set, encoder: new(lines.Encoder)}
	stream := &streamOutput{w: io.Discard, encoder: new(lines.Encoder)}
	for _, o := range []output{file, stream} {
		if _, err := o.take(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		if _, err := o.flush(true); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(file.line); n > lineKeeps {
		t.Errorf("the file output keeps %d bytes", n)
	}
	if n := cap(stream.pending); n > lineKeeps {
		t.Errorf("the stream output keeps %d bytes", n)
	}
}

// TestPumpCommitsEachSecond, even if there is always more to take.
func TestPumpCommitsEachSecond(t *testing.T) {
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var last journal.Position
	for i := range 3 {
		c := numbered("t", i, 1)
		if last, err = j.Append(c.AppendHead(nil), c.Entries, c.AppendTail(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Sync(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	reader, err := j.Reader("sink")
	if err != nil {
		t.Fatal(err)
	}
	s := &sink{reached: make(chan struct{}), fail: func(string) error { return nil }}
	p := &pump{name: "sink", reader: reader, confirm: func(int, journal.Position) {}, output: &sinkOutput{sink: s}}
	p.committed, _ = reader.Committed()
	p.taken = p.committed
	for range 2 {
		if _, err := p.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first := p.taken
	if len(s.durable) > 0 {
		t.Error("committed at once")
	}
	p.since = p.since.Add(-2 * commitEvery)
	if _, err := p.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at, _ := reader.Committed(); at != first || len(s.durable) != 2 {
		t.Errorf("the cursor is at %v, want %v", at, first)
	}
}

// TestPumpReopensLessAndLess: an output that must be opened again each time may keep each time what it got.
func TestPumpReopensLessAndLess(t *testing.T) {
	var p pump
	var waits []time.Duration
	for range 20 {
		if w := p.patience(false); w != retryPause {
			t.Fatalf("%v after an error that changes nothing", w)
		}
		waits = append(waits, p.patience(true))
	}
	if !slices.IsSorted(waits) || waits[0] != retryPause || waits[19] != reopenMost {
		t.Errorf("waits %v", waits)
	}
}
