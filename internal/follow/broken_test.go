// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/journal"
)

// outputOf is an output that a test makes of a function.
type outputOf func(c *forward.Chunk, done func(output.Result))

func (f outputOf) Submit(c *forward.Chunk, done func(output.Result)) { f(c, done) }
func (f outputOf) Flush(context.Context) error                       { return nil }
func (f outputOf) Close(context.Context) error                       { return nil }

// ledger is a journal with a cursor.
type ledger struct {
	*journal.Journal
	reader *journal.Reader
}

func newLedger(t *testing.T) *ledger {
	j, err := journal.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	r, err := j.Reader("out")
	if err != nil {
		t.Fatal(err)
	}
	return &ledger{j, r}
}

// add appends records and returns the end of the last.
func (l *ledger) add(t *testing.T, records ...[]byte) (p journal.Position) {
	for _, b := range records {
		var err error
		if p, err = l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// record is a chunk of one entry with a number and some bytes.
func record(n uint32, size int, zip bool) []byte {
	entry := binary.BigEndian.AppendUint32([]byte{0x92, 0xce}, n)
	entry = append(entry, 0xc6)
	entry = binary.BigEndian.AppendUint32(entry, uint32(size))
	entry = append(entry, bytes.Repeat([]byte{byte(n)}, size)...)
	c := forward.Chunk{Tag: "t", Entries: entry, Events: 1}
	if zip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(entry)
		_ = z.Close()
		c.Compressed, c.Compression = b.Bytes(), "gzip"
	}
	return bytes.Join([][]byte{c.AppendHead(nil), c.Body(), c.AppendTail(nil)}, nil)
}

// number is that of a chunk, or an error if it is not as record made it.
func number(c *forward.Chunk) (uint32, error) {
	if len(c.Entries) < 11 {
		return 0, fmt.Errorf("%d bytes", len(c.Entries))
	}
	n := binary.BigEndian.Uint32(c.Entries[2:])
	for _, b := range c.Entries[11:] {
		if b != byte(n) {
			return n, fmt.Errorf("chunk %d has a byte %d", n, b)
		}
	}
	return n, nil
}

// TestRestBesideStuckOutput: while an output does nothing with what it has, its follower does
// little.
func TestRestBesideStuckOutput(t *testing.T) {
	for _, eager := range []bool{false, true} {
		for _, draining := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger(t)
				l.add(t, record(1, 10, false))
				looks := 0
				f := follow.New(&follow.Config{
					Reader: l.reader, Eager: eager,
					Open: func() (output.Output, error) {
						return outputOf(func(*forward.Chunk, func(output.Result)) {}), nil
					},
					Recent: func(journal.Position) (follow.Recent, bool) {
						looks++
						return follow.Recent{}, false
					},
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				drain, begin := context.WithCancel(t.Context())
				if draining {
					begin()
				}
				defer begin()
				if err := f.Run(ctx, drain); err != nil {
					t.Error(err)
				}
				if looks > 150 {
					t.Errorf("eager %v, draining %v: it looked %d times in a minute", eager, draining, looks)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestDoneTwice: a chunk of which an output says twice that it is done does not stand for another.
func TestDoneTwice(t *testing.T) {
	l := newLedger(t)
	const records = 50
	var all [][]byte
	for n := range uint32(records) {
		all = append(all, record(n, 10, false))
	}
	last := l.add(t, all...)
	var mu sync.Mutex
	reports, submitted, delivered := 0, 0, 0
	over, end := context.WithCancel(t.Context())
	defer end()
	var before func(output.Result)
	f := follow.New(&follow.Config{
		Reader: l.reader, Guard: true, Chunks: 1,
		Open: func() (output.Output, error) {
			return outputOf(func(_ *forward.Chunk, done func(output.Result)) {
				if submitted++; before != nil {
					before(output.Result{}) // of the chunk before, whose memory this one has
				}
				before = done
				if submitted < records { // the last one is never done
					delivered++
					done(output.Result{})
				} else {
					end()
				}
			}), nil
		},
		Report: func(error) {
			mu.Lock()
			defer mu.Unlock()
			reports++
		},
	})
	if err := f.Run(over, t.Context()); err != nil {
		t.Fatal(err)
	}
	if reports != records-1 || delivered != records-1 {
		t.Errorf("%d reports, %d delivered", reports, delivered)
	}
	r, err := l.Reader("out")
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := r.Committed(); p >= last {
		t.Error("the cursor has passed a chunk that was not done")
	}
}

// TestEndWhileLettersAreFull: that there was no time for a commit is no error.
func TestEndWhileLettersAreFull(t *testing.T) {
	l := newLedger(t)
	l.add(t, record(1, 10, false))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := follow.New(&follow.Config{
		Reader: l.reader, Eager: true,
		Open: func() (output.Output, error) {
			return outputOf(func(_ *forward.Chunk, done func(output.Result)) {
				done(output.Result{Rejected: []output.Rejected{{Entry: output.AllEntries}}})
			}), nil
		},
		Refuse: func(context.Context, []follow.Refused) error {
			cancel()
			return errors.New("full")
		},
		Passed: func(journal.Position, follow.Counts) { t.Error("the cursor passes what is no dead letter") },
	})
	if err := f.Run(ctx, t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSparesAreBounded: buffers that were once large are not kept by all that have had one, and
// what is compressed comes out as it was.
func TestSparesAreBounded(t *testing.T) {
	l := newLedger(t)
	const records = 3000
	var all [][]byte
	for n := range uint32(records) {
		size := 10
		if n%50 == n/50%50 { // another place in the window each time
			size = 500_000
		}
		all = append(all, record(n, size, n%3 == 0))
	}
	l.add(t, all...)
	var waiting []func(output.Result)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := uint32(0)
	f := follow.New(&follow.Config{
		Reader: l.reader, Bytes: 1 << 20,
		Open: func() (output.Output, error) {
			return outputOf(func(c *forward.Chunk, done func(output.Result)) {
				if n, err := number(c); err != nil || n != next {
					t.Errorf("chunk %d, want %d: %v", n, next, err)
				}
				next++
				if waiting = append(waiting, done); len(waiting) == 80 || len(c.Entries) > 1000 || next == records {
					for _, done := range waiting {
						done(output.Result{})
					}
					waiting = waiting[:0]
				}
				if next == records {
					cancel()
				}
			}), nil
		},
	})
	before := heap()
	if err := f.Run(ctx, t.Context()); err != nil {
		t.Fatal(err)
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	runtime.KeepAlive(f)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// resumed is an output with a state, which it saves once while it has no chunk.
type resumed struct {
	outputOf
	save func([]byte) error
}

func (o *resumed) Resume(save func([]byte) error, _ ...[]byte) error {
	o.save = save
	return nil
}

// TestNoChunkKeepsSavedState: a record that is no chunk does not bring back a state from before the
// one that the output has saved.
func TestNoChunkKeepsSavedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		l.add(t, record(1, 10, false))
		o := &resumed{outputOf: func(_ *forward.Chunk, done func(output.Result)) {
			done(output.Result{State: []byte("first")})
		}}
		passed := 0
		f := follow.New(&follow.Config{
			Reader: l.reader, Open: func() (output.Output, error) { return o, nil },
			Passed: func(journal.Position, follow.Counts) { passed++ },
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error)
		go func() { ended <- f.Run(ctx, t.Context()) }()
		time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble; a timer's channel crashes the race detector there
		synctest.Wait()
		if err := o.save([]byte("second")); err != nil {
			t.Fatal(err)
		}
		p := l.add(t, []byte("no chunk"))
		time.Sleep(3 * time.Second) //nolint:forbidigo // in a bubble; a timer's channel crashes the race detector there
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r, err := l.Reader("out")
		if err != nil {
			t.Fatal(err)
		}
		if at, state := r.Committed(); at != p || string(state) != "second" || passed != 2 {
			t.Errorf("at %v with %q after %d commits, want %v with what was saved", at, state, passed, p)
		}
		_ = r.Close()
		_ = l.Close()
	})
}
