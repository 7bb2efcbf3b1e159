// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/await"
	"github.com/spillwaylog/spillway/internal/successor"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

// A ringSink keeps numbers of events, and positions; it knows no repeats.
type ringSink struct {
	t        *testing.T
	got      []uint32
	position []byte
	stores   int
	most     int                 // then it takes nothing
	bad      func([]uint32) bool // the chunk is refused for good
	full     func()              // called when it has taken most
	failed   error               // of the next Store; nil: it works

	notSynced error
}

func (s *ringSink) Position() []byte { return s.position }

func (s *ringSink) synced(context.Context) error { return s.notSynced }

func (s *ringSink) Store(_ context.Context, chunks []*forward.Chunk, position []byte) (func(context.Context) error,
	error,
) {
	if s.stores >= s.most {
		s.full()
		return nil, errTakesNothing
	}
	if err := s.failed; err != nil {
		s.failed = nil
		return nil, err
	}
	s.stores++
	var numbers []uint32
	for _, c := range chunks {
		entries := forward.ReadEntries(c.Entries)
		for e, ok := entries.Next(); ok; e, ok = entries.Next() {
			numbers = append(numbers, binary.BigEndian.Uint32(e.Record[4:]))
		}
	}
	if s.bad != nil && s.bad(numbers) {
		return nil, fmt.Errorf("%w: for the test", forward.ErrMalformed)
	}
	s.got, s.position = append(s.got, numbers...), slices.Clone(position)
	if len(position) > MaxPosition {
		s.t.Errorf("a position of %d bytes", len(position))
	}
	return func(context.Context) error { return nil }, nil
}

// leaveRing leaves a ring with events under so many tags, 300 each.
func leaveRing(t *testing.T, path string, tags int) (want []uint32) {
	t.Helper()
	r, err := ring.Open(&ring.Options{
		Dir: filepath.Join(path, "spillway-0"), Name: "app",
		Identity: []byte("forward://x:1\x00"), Size: 8 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	var h ring.Hint
	for n := range uint32(300 * tags) {
		p := append(window.AppendPayload(nil, fmt.Sprint("t", n%uint32(tags))), 0x81, 0xa1, 'n', 0xce)
		if _, err := r.Append(&h, int64(time.Second), binary.BigEndian.AppendUint32(p, n)); err != nil {
			t.Fatal(err)
		}
		want = append(want, n)
	}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	return want
}

// openRings opens an input for what is in path.
func openRings(t *testing.T, path string) *ringInput {
	t.Helper()
	c := Config{Inputs: Ends("ring://" + path + "?after=0s"), Log: slog.New(slog.DiscardHandler)}
	plans, err := planInputs(&c)
	if err != nil {
		t.Fatal(err)
	}
	in, err := plans[0].open(&Collector{reporter: newReporter(c.Log)}, &account{name: "rings"})
	if err != nil {
		t.Fatal(err)
	}
	return in.(*ringInput)
}

// runRings takes over what is in path until nothing is left, or the sink takes no more.
func runRings(t *testing.T, path string, sink *ringSink) Received {
	t.Helper()
	r := openRings(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sink.full = cancel
	go func() {
		for ctx.Err() == nil {
			if left, err := filepath.Glob(filepath.Join(path, "*", "*")); err == nil && len(left) == 0 {
				cancel()
			}
			if await.Pause(ctx, 5*time.Millisecond) != nil {
				return
			}
		}
	}()
	if err := r.Run(ctx, sink); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return r.Stats()
}

// TestRingsPosition: what was stored and not taken out of the ring is not stored again, though
// nobody but the position knows it: the store's memory is an hour long.
func TestRingsPosition(t *testing.T) {
	path := t.TempDir()
	const tags = 20
	want := leaveRing(t, path, tags)
	var got []uint32
	var position []byte
	for most := 3; ; most += 7 {
		sink := &ringSink{t: t, position: position, most: most}
		stats := runRings(t, path, sink)
		got, position = append(got, sink.got...), sink.position
		if stats.Rings == 1 {
			break
		}
		if most > 1000 {
			t.Fatalf("it does not end: %d events", len(got))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d events, want %d, each once", len(got), len(want))
	}
}

// TestRingsRefused: a chunk that the store refuses for good is counted, and holds up nothing.
func TestRingsRefused(t *testing.T) {
	path := t.TempDir()
	want := leaveRing(t, path, 3)
	refused := 0
	sink := &ringSink{t: t, most: 1000, bad: func(n []uint32) bool {
		if n[0]%3 == 1 {
			refused += len(n)
			return true
		}
		return false
	}}
	stats := runRings(t, path, sink)
	if len(sink.got)+refused != len(want) || refused == 0 || stats.Rings != 1 || stats.Invalid != int64(refused) {
		t.Errorf("%d events and %d refused of %d; %+v", len(sink.got), refused, len(want), stats)
	}
}

// TestRingsNotStored: a chunk that the store could not take is no known one when its ring is taken
// over again.
func TestRingsNotStored(t *testing.T) {
	path := t.TempDir()
	want := leaveRing(t, path, 3)
	r := openRings(t, path)
	sink := &ringSink{t: t, most: 1000, failed: journal.ErrTooLarge}
	for _, fails := range []bool{true, false} {
		takeRing(t, r, sink, 0, fails)
	}
	slices.Sort(sink.got)
	if stats := r.Stats(); !slices.Equal(sink.got, want) || stats.Rings != 1 {
		t.Errorf("%d events, want %d, each once; %+v", len(sink.got), len(want), stats)
	}
}

// takeRing takes one of the rings that are left, which may fail.
func takeRing(t *testing.T, r *ringInput, sink *ringSink, i int, fails bool) {
	t.Helper()
	r.successor = successor.New(&r.options) // for the one before waits a while
	due, err := r.successor.Look()
	if err != nil || len(due) <= i {
		t.Fatalf("due: %q, %v", due, err)
	}
	if err := r.take(t.Context(), sink, due[i]); (err != nil) != fails {
		t.Fatalf("taking %s: %v", due[i], err)
	}
}

// TestRingsSeveral: what is stored of a ring and not done is known, too, when another ring is taken
// over in between of which something was known.
func TestRingsSeveral(t *testing.T) {
	path := t.TempDir()
	want := append(leaveRing(t, path, 3), leaveRing(t, path, 2)...)
	r := openRings(t, path)
	sink := &ringSink{t: t, most: 1000}
	for i := range 2 {
		sink.notSynced = errors.New("for the test")
		takeRing(t, r, sink, i, true)
	}
	sink.notSynced = nil
	takeRing(t, r, sink, 1, false)
	takeRing(t, r, sink, 0, false)
	slices.Sort(sink.got)
	slices.Sort(want)
	if stats := r.Stats(); !slices.Equal(sink.got, want) || stats.Rings != 2 || len(r.ids) > 0 {
		t.Errorf("%d events, want %d, each once; %+v", len(sink.got), len(want), stats)
	}
}
