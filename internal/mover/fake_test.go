// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// An event is what tests append: goroutine g's number n, under a tag.
type event struct {
	tag  string
	g, n uint32
}

// payload is fixmap {"g": g, "n": n, "pad": …}.
func (e event) payload(dst []byte, pad int) []byte {
	dst = window.AppendPayload(dst, e.tag)
	dst = append(dst, 0x83, 0xa1, 'g', 0xce)
	dst = binary.BigEndian.AppendUint32(dst, e.g)
	dst = append(dst, 0xa1, 'n', 0xce)
	dst = binary.BigEndian.AppendUint32(dst, e.n)
	dst = append(dst, 0xa3, 'p', 'a', 'd', 0xc5, byte(pad>>8), byte(pad))
	return append(dst, make([]byte, pad)...)
}

// summaryEvent is what Summary makes: its g is all ones and its n the total.
func summaryEvent(dst []byte, d Missed) []byte {
	return event{"summary", 1<<32 - 1, uint32(d.Total())}.payload(dst, 0)
}

// sent is a chunk that a fake took.
type sent struct {
	id      string
	entries []byte
	events  []event
}

// fake is a destination that does as it is told, and remembers.
type fake struct {
	mu      sync.Mutex
	took    []sent               // in the order of done
	pending []*job1              // submitted, not done
	answer  func(j *job1) string // "ok", "taken", "later", "state:…", "refused" for the first entry; nil is ok
	closed  bool
	hang    chan struct{} // Close hangs until it is closed
}

type job1 struct {
	c    *forward.Chunk
	done func(output.Result)
	id   string
}

func (d *fake) Submit(c *forward.Chunk, done func(output.Result)) {
	j := &job1{c, done, string(c.ID)}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		done(output.Result{Err: output.ErrClosed})
		return
	}
	d.pending = append(d.pending, j)
	answer := "ok"
	if d.answer != nil {
		answer = d.answer(j)
	}
	d.mu.Unlock()
	d.finish(j, answer)
}

// finish ends a job, unless the answer is "later".
func (d *fake) finish(j *job1, answer string) {
	if answer == "later" {
		return
	}
	d.mu.Lock()
	i := slices.Index(d.pending, j)
	if i < 0 {
		d.mu.Unlock()
		return
	}
	d.pending = slices.Delete(d.pending, i, i+1)
	d.took = append(d.took, read(j.c))
	d.mu.Unlock()
	r := output.Result{HandedOver: answer == "taken"}
	if answer == "refused" {
		r.Rejected = []output.Rejected{{Entry: 0, Err: errors.New("not liked")}}
	}
	if s, ok := strings.CutPrefix(answer, "state:"); ok {
		r.State = []byte(s)
	}
	j.done(r)
}

// open answers everything that waits, and all that comes, with ok.
func (d *fake) open() {
	d.mu.Lock()
	d.answer = nil
	jobs := d.pending
	d.pending = nil
	for _, j := range jobs {
		d.took = append(d.took, read(j.c))
	}
	d.mu.Unlock()
	for _, j := range jobs {
		j.done(output.Result{})
	}
}

func (d *fake) Flush(context.Context) error { return nil }

func (d *fake) Close(ctx context.Context) error {
	if d.hang != nil {
		<-d.hang
	}
	d.mu.Lock()
	d.closed = true
	jobs := d.pending
	d.pending = nil
	d.mu.Unlock()
	for _, j := range jobs {
		j.done(output.Result{Err: output.ErrClosed})
	}
	return nil
}

func (d *fake) all() []sent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.took)
}

// read copies a chunk.
func read(c *forward.Chunk) sent {
	s := sent{id: string(c.ID), entries: bytes.Clone(c.Entries)}
	r := forward.ReadEntries(c.Entries)
	for {
		e, ok := r.Next()
		if !ok {
			break
		}
		b := e.Record
		s.events = append(s.events, event{c.Tag, binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[11:])})
	}
	if r.Err() != nil || len(s.events) != c.Events || !c.UniqueID || len(c.ID) != idLen {
		panic(fmt.Sprintf("a chunk of %d events that has %d: %v", c.Events, len(s.events), r.Err()))
	}
	return s
}

// A fixture is a mover with a fake destination and what they told.
type fixture struct {
	t    *testing.T
	m    *Mover
	d    *fake
	mu   sync.Mutex
	told []error
}

func open(t *testing.T, d *fake, set func(c *Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, d: d}
	c := &Config{Name: "test", Destination: d, RingSize: 1 << 20, diskPatience: patience, Diagnostics: func(err error) {
		f.mu.Lock()
		f.told = append(f.told, err)
		f.mu.Unlock()
	}}
	if set != nil {
		set(c)
	}
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	f.m = m
	return f
}

func (f *fixture) post(tag string, g, n uint32, pad int) error {
	var h ring.Hint
	return f.m.Append(context.Background(), &h, int64(n)+1, false, event{tag, g, n}.payload(nil, pad))
}

// must appends events g.from … g.to-1.
func (f *fixture) must(tag string, g, from, to uint32, pad int) {
	f.t.Helper()
	for n := from; n < to; n++ {
		if err := f.post(tag, g, n, pad); err != nil {
			f.t.Fatalf("event %d.%d: %v", g, n, err)
		}
	}
}

// patience is how long a test waits for what must happen: longer than any disk stands still.
const patience = 4 * time.Minute

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.m.Close(within(f.t, patience)); err != nil {
		f.t.Fatal(err)
	}
	f.law()
}

// abandon closes while not all is delivered, and returns when whatever is left can be taken over:
// on a busy machine that is later than Close.
func (f *fixture) abandon(d time.Duration) error {
	err := f.m.Close(within(f.t, d))
	<-f.m.ended
	<-f.m.disk.rest()
	return err
}

// law asserts that every event has gone somewhere. It is exact when nothing moves: it is given the
// time to be.
func (f *fixture) law() {
	f.t.Helper()
	var s Stats
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		s = f.m.Stats()
		if sum := s.Delivered + s.HandedOver + s.DeadLettered + s.Missed[Oldest] + s.Missed[Lost] + s.Missed[GivenUp] +
			s.Held; s.Accepted == sum {
			if s.Held == 0 && s.HeldBytes != 0 {
				f.t.Errorf("nothing is held, in %d bytes", s.HeldBytes)
			}
			return
		}
		<-time.After(time.Millisecond)
	}
	f.t.Errorf("accepted %d is not delivered %d + handed over %d + dropped %d, %d, %d + held %d",
		s.Accepted, s.Delivered, s.HandedOver, s.Missed[Oldest], s.Missed[Lost], s.Missed[GivenUp], s.Held)
}

// ordered asserts that of every goroutine the events 0 … n-1 came, once and in order, under each
// tag. It returns how many there were.
func ordered(t *testing.T, took []sent, want map[uint32]uint32) {
	t.Helper()
	next := map[uint32]uint32{}
	ids := map[string]int{}
	for _, s := range took {
		if ids[s.id]++; ids[s.id] > 1 {
			t.Fatalf("chunk %s came %d times", s.id, ids[s.id])
		}
		for _, e := range s.events {
			if e.g == 1<<32-1 {
				continue
			}
			if e.n != next[e.g] {
				t.Fatalf("of goroutine %d came %d, not %d", e.g, e.n, next[e.g])
			}
			next[e.g]++
		}
	}
	for g, n := range want {
		if next[g] != n {
			t.Fatalf("of goroutine %d came %d events, not %d", g, next[g], n)
		}
	}
}

// eventually polls.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-tick.C
	}
}
