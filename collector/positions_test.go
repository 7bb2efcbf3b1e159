// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// positioned is a collector with inputs of package test.
func positioned(t *testing.T, dir string, ends ...End) (*running, map[string]Sink) {
	t.Helper()
	inputs, sinks := map[string]*fake{}, map[string]chan Sink{}
	for _, e := range ends {
		_, path, _ := strings.Cut(e.URL, ":")
		path, _, _ = strings.Cut(path, "?")
		inputs[path], sinks[path] = handed()
	}
	if len(ends) == 0 {
		ends = Ends("forward://127.0.0.1:0")
	}
	r := run(t, &Config{Dir: dir, Outputs: Ends("discard:"), Inputs: ends, InputKinds: fakes(inputs)})
	got := map[string]Sink{}
	for path, c := range sinks {
		got[path] = <-c
	}
	return r, got
}

func noID(tag string, from, n int) *forward.Chunk {
	c := numbered(tag, from, n)
	c.ID, c.UniqueID = nil, false
	return c
}

// TestPositions: an input finds the position that it stored last, by its name or its URL's scheme
// and path; the cursor lives while such inputs are configured.
func TestPositions(t *testing.T) {
	dir := t.TempDir()
	want := func(s Sink, position string) {
		t.Helper()
		if string(s.Position()) != position || (position == "") != (s.Position() == nil) {
			t.Errorf("got %q, want %q", s.Position(), position)
		}
	}
	stop := func(r *running) {
		t.Helper()
		for r.Stats().Counting {
			runtime.Gosched()
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	r, s := positioned(t, dir, End{Name: "a", URL: "fake:a"}, End{URL: "fake:b"}, End{URL: "fake:c"})
	want(s["a"], "")
	offer(t, s["a"], []byte("a1"), noID("t", 0, 1), noID("t", 1, 1))
	offer(t, s["b"], []byte("b1"), noID("t", 2, 1))
	offer(t, s["a"], []byte("a2"), noID("t", 3, 1))
	offer(t, s["b"], []byte("b2"), &forward.Chunk{Tag: "t"})
	want(s["a"], "") // of the start
	stop(r)

	r, s = positioned(t, dir, End{Name: "a", URL: "fake:elsewhere"}, End{URL: "fake:b?x=1"},
		End{Name: "new", URL: "fake:c"})
	want(s["elsewhere"], "a2")
	want(s["b"], "b2")
	want(s["c"], "")
	stop(r)
	if !slices.Contains(r.journalCursors(t), positionsCursor) {
		t.Error("the cursor is gone")
	}

	r, s = positioned(t, dir, End{URL: "fake:b"}) // a is given up
	want(s["b"], "b2")
	stop(r)
	r, s = positioned(t, dir, End{Name: "a", URL: "fake:a"})
	want(s["a"], "")
	stop(r)
	if slices.Contains(r.journalCursors(t), positionsCursor) {
		t.Error("a cursor without positions holds the journal")
	}
	r, s = positioned(t, dir, End{Name: "a", URL: "fake:a"})
	offer(t, s["a"], []byte{}, noID("t", 4, 1))
	stop(r)
	r, s = positioned(t, dir, End{Name: "a", URL: "fake:a"})
	if p := s["a"].Position(); p == nil || len(p) > 0 {
		t.Errorf("%v is not the empty position", p)
	}
	stop(r)
	r, _ = positioned(t, dir)
	if slices.Contains(r.journalCursors(t), positionsCursor) {
		t.Error("a cursor that no input has holds the journal")
	}
	stop(r)
}

// TestPositionOfRepeats: the position of a group goes into the record of the last chunk that is
// stored.
func TestPositionOfRepeats(t *testing.T) {
	dir := t.TempDir()
	r, s := positioned(t, dir, End{URL: "fake:a"})
	first, second := numbered("t", 0, 1), numbered("t", 1, 1)
	offer(t, s["a"], []byte("1"), first)
	offerOn(t, 1, s["a"], []byte("2"), second, first.Clone())
	if n := r.Stats(); n.Stored != 2 || n.Repeated != 1 {
		t.Fatalf("%+v", n.Counts)
	}
	// What lies in the journal now is what a crash leaves.
	var got []string
	i, err := journal.Inspect(filepath.Join(dir, "journal"))
	if err == nil {
		err = i.Records(func(rec journal.Record) bool {
			_, position, _ := positionIn(rec.Data)
			got = append(got, string(position))
			return true
		})
	}
	if err != nil || !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("%q, %v", got, err)
	}
	offerOn(t, 2, s["a"], []byte("3"), second.Clone()) // no record
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r, s = positioned(t, dir, End{URL: "fake:a"})
	if p := s["a"].Position(); string(p) != "3" {
		t.Errorf("%q", p)
	}
	for r.Stats().Counting {
		runtime.Gosched()
	}
}

// TestPositionsDamaged: a state that cannot be read is told, and the records have to do.
func TestPositionsDamaged(t *testing.T) {
	for _, state := range [][]byte{[]byte("?"), {0x92, 2, 0x80}, append(appendPositions(nil, nil), 0)} {
		dir := t.TempDir()
		j, err := journal.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := openPositions(j, []string{"a"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.hold(); err != nil {
			t.Fatal(err)
		}
		c := noID("t", 0, 1)
		record := append(c.AppendHead(nil), c.Entries...)
		at, err := j.Append(record, appendPosition(c.AppendTail(nil), "a", []byte("here")))
		if err == nil {
			err = j.Sync(t.Context(), at)
		}
		if err == nil {
			err = errors.Join(p.reader.SkipTo(at), p.reader.Commit(at, state), p.close())
		}
		if err != nil {
			t.Fatal(err)
		}
		var told []error
		p, _, err = openPositions(j, []string{"a"}, func(err error) { told = append(told, err) })
		if err != nil {
			t.Fatal(err)
		}
		if len(told) != 1 || !errors.Is(told[0], errPositions) || string(p.of("a").found) != "here" {
			t.Errorf("%v, %q", told, p.of("a").found)
		}
		if err := errors.Join(p.settle(), p.close(), j.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestPositionsCursor: it stands behind what is durable and noted, and before what is being
// appended.
func TestPositionsCursor(t *testing.T) {
	j, err := journal.Open(t.TempDir(), &journal.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	p, _, err := openPositions(j, []string{"a", "b"}, nil)
	if err == nil {
		err = p.hold()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	var last journal.Position
	fill := func() {
		for range 3 {
			if last, err = j.Append(bytes.Repeat([]byte{1}, 30<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Sync(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		last = j.Synced() // padding included
	}
	at := func() journal.Position {
		if err := p.save(t.Context()); err != nil {
			t.Fatal(err)
		}
		at, _ := p.reader.Committed()
		return at
	}
	fill()
	if got := at(); got != last {
		t.Errorf("nothing is new: the cursor stands at %v and not at %v: it holds segments", got, last)
	}
	p.of("a").begin()
	held := last
	fill()
	if got := at(); got != held {
		t.Errorf("the cursor stands at %v, before a record that is being appended at %v", got, held)
	}
	p.of("a").note([]byte("x"), last)
	if got := at(); got != last {
		t.Errorf("the cursor stands at %v and not at %v", got, last)
	}
	_, state := p.reader.Committed()
	if got, err := parsePositions(state); err != nil || fmt.Sprint(got) != "map[a:[120]]" {
		t.Errorf("%v, %v", got, err)
	}
	p.of("b").begin()
	p.of("b").giveUp()
	fill()
	if got := at(); got != last {
		t.Errorf("the cursor stands at %v and not at %v: it waits for a record that was given up", got, last)
	}
	// What was noted is not yet durable: the commit waits until it is.
	if last, err = j.Append([]byte{1}); err != nil {
		t.Fatal(err)
	}
	p.of("b").note([]byte("y"), last)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.save(ctx); err == nil && j.Synced() < last {
		t.Error("a position was kept whose record may be lost")
	}
	at()
	if j.Synced() < last {
		t.Error("a position was kept whose record may be lost")
	}
}

func FuzzPositions(f *testing.F) {
	c := noID("t", 0, 1)
	tail := appendPosition(c.AppendTail(nil), "in.a", []byte("p"))
	f.Add(append(append(c.AppendHead(nil), c.Entries...), tail...))
	f.Add(appendPositions(nil, map[string]*bookmark{"a": {position: []byte("x")}, "b": {}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		stored, err := parsePositions(b)
		if stored == nil || err != nil && len(stored) > 0 {
			t.Error("an error with positions")
		}
		marks := map[string]*bookmark{}
		for key, position := range stored {
			marks[key] = &bookmark{position: position}
		}
		if again, err := parsePositions(appendPositions(nil, marks)); err != nil ||
			fmt.Sprint(again) != fmt.Sprint(stored) {
			t.Errorf("%v became %v, %v", stored, again, err)
		}
		if mark := fingerprintIn(b); !bytes.Contains(b, mark) {
			t.Errorf("%q", mark)
		}
		if key, position, ok := positionIn(b); ok && !bytes.Contains(b, append([]byte(nil), position...)) {
			t.Errorf("%q, %q", key, position)
		}
		// Whatever the record is, a fingerprint and a position that are added are found.
		var c forward.Chunk
		if c.Parse(b) == nil {
			record := append(c.AppendHead(nil), c.Body()...)
			record = append(record, appendPosition(appendFingerprint(c.AppendTail(nil), []byte("print")), "k", b)...)
			if mark := fingerprintIn(record); string(mark) != "print" {
				t.Errorf("%q", mark)
			}
			if key, position, ok := positionIn(record); !ok || key != "k" || !bytes.Equal(position, b) {
				t.Errorf("%q, %q, %v", key, position, ok)
			}
			if c.Parse(record) != nil {
				t.Error("the record is no chunk any more")
			}
		}
	})
}
