// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// segmentsAt is where a ring's records begin in its file.
const segmentsAt = 90112

// scribble writes over the records of the one ring in mem.
func scribble(t *testing.T, mem string, with func(b []byte)) {
	t.Helper()
	names := entriesOf(t, mem)
	if len(names) != 1 {
		t.Fatal(names)
	}
	f, err := os.OpenFile(filepath.Join(mem, names[0], "ring"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size()-segmentsAt)
	if _, err := f.ReadAt(b, segmentsAt); err != nil {
		t.Fatal(err)
	}
	with(b)
	if _, err := f.WriteAt(b, segmentsAt); err != nil {
		t.Fatal(err)
	}
}

// TestZeroedRing has another program zero a ring in which events lie that the mover has seen and
// not cut yet, and others. None of them is called delivered, and none makes a chunk that is none.
func TestZeroedRing(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		for _, n := range []uint32{1, 208, 256, 1000} {
			mem := shmDir(t)
			d := &fake{}
			f := open(t, d, func(c *Config) {
				c.Shm, c.Ordered, c.FlushInterval, c.BatchBytes, c.RingSize = mem, ordered, time.Hour, 16<<20, 4<<20
			})
			f.must("a", 1, 0, n, 100)
			if err := f.m.mail.ask(t.Context(), func() { f.m.rings.cur.Load().Fill() }); err != nil {
				t.Fatal(err)
			}
			scribble(t, mem, func(b []byte) { clear(b) })
			f.must("a", 2, 0, 10, 100)
			if err := f.m.Close(within(t, patience)); err != nil {
				t.Error(err)
			}
			f.law()
			wantHonest(t, f, uint64(n))
		}
	}
}

// wantHonest asserts that what is called delivered came, and that the loss of most of n events was
// counted and told.
func wantHonest(t *testing.T, f *fixture, n uint64) {
	t.Helper()
	came := uint64(0)
	for _, c := range f.d.all() {
		came += uint64(len(c.events))
	}
	s := f.m.Stats()
	if s.Delivered != came || s.Missed[Lost] < n/2 || s.Held != 0 {
		t.Errorf("%d came of %d: %+v", came, s.Accepted, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.told) == 0 || len(f.told) > 10 {
		t.Errorf("told %v", f.told)
	}
}

// TestOneRecordOverwritten: where another program made one record into something else, that one is
// lost, and all others are delivered in chunks of their own bytes.
func TestOneRecordOverwritten(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(payload []byte){
		"zeros":          func(b []byte) { clear(b) },
		"no map":         func(b []byte) { b[2] = 0xc0 },
		"cut off":        func(b []byte) { b[2] = 0x84 },
		"more behind":    func(b []byte) { b[2] = 0x82 },
		"no MessagePack": func(b []byte) { b[3] = 0xc1 },
		"a long tag":     func(b []byte) { binary.PutUvarint(b, uint64(len(b)-20)) },
	} {
		for _, ordered := range []bool{false, true} {
			for _, at := range []uint32{0, 5, 99} {
				t.Run(name, func(t *testing.T) {
					mem := shmDir(t)
					d := &fake{}
					f := open(t, d, func(c *Config) {
						c.Shm, c.Ordered, c.FlushInterval, c.BatchBytes, c.RingSize =
							mem, ordered, time.Hour, 16<<20, 4<<20
					})
					const pad = 1100
					for n := range uint32(100) {
						f.must(string("ab"[n/3%2]), 1, n, n+1, pad)
					}
					if err := f.m.mail.ask(t.Context(), func() { f.m.rings.cur.Load().Fill() }); err != nil {
						t.Fatal(err)
					}
					scribble(t, mem, func(b []byte) {
						p := event{string("ab"[at/3%2]), 1, at}.payload(nil, pad)
						i := strings.Index(string(b), string(p))
						if i < 0 {
							t.Fatal("the event is not in the ring")
						}
						change(b[i : i+len(p)])
					})
					f.close()
					if s := f.m.Stats(); s.Delivered != 99 || s.Missed[Lost] != 1 {
						t.Errorf("%+v", s)
					}
					wantHonest(t, f, 1)
				})
			}
		}
	}
}

// TestSuccessorOfAZeroedRing: what a dead process left and another program overwrote is counted,
// and not called delivered.
func TestSuccessorOfAZeroedRing(t *testing.T) {
	t.Parallel()
	for _, ordered := range []bool{false, true} {
		mem := shmDir(t)
		conf := func(c *Config) { c.Shm, c.Ordered = mem, ordered }
		f := open(t, &fake{answer: later}, conf)
		f.must("a", 1, 0, 900, 500)
		eventually(t, "chunks", func() bool { return f.m.Stats().InFlight > 0 })
		_ = f.abandon(10 * time.Millisecond) // leaves everything
		half := 0
		scribble(t, mem, func(b []byte) { half = len(b) / 2; clear(b[:half]) })
		g := open(t, &fake{}, conf)
		if err := g.m.Flush(within(t, patience)); err != nil {
			t.Error(err)
		}
		g.close()
		wantHonest(t, g, 2)
	}
}

// TestOverwrittenIsNotDelivered: a call that waits for an event which another program overwrote
// says that it is lost, also when its ring failed by that.
func TestOverwrittenIsNotDelivered(t *testing.T) {
	t.Parallel()
	mem := shmDir(t)
	f := open(t, &fake{answer: later}, func(c *Config) {
		c.Shm, c.WaitDelivered, c.MaxWait, c.Window = mem, true, patience, 1
	})
	answers := make(chan error)
	const n = 300
	for i := range uint32(n) {
		go func() { answers <- f.post("a", i, i, 100) }()
		if i == 0 {
			eventually(t, "one is on its way, and the others wait", func() bool { return f.m.Stats().InFlight == 1 })
		}
	}
	eventually(t, "all wait", func() bool {
		s := f.m.Stats()
		return s.InFlight == 1 && s.Accepted == n && f.m.rings.cur.Load().waiting.Load() == n
	})
	scribble(t, mem, func(b []byte) { clear(b) })
	f.d.open()
	delivered, dropped := uint64(0), uint64(0)
	for range n {
		switch err := <-answers; {
		case err == nil:
			delivered++
		case errors.Is(err, ErrDropped):
			dropped++
		default:
			t.Error(err)
		}
	}
	f.close()
	if s := f.m.Stats(); s.Delivered != delivered || s.Missed[Lost] != dropped || dropped == 0 {
		t.Errorf("%d answers say delivered, %d lost: %+v", delivered, dropped, s)
	}
}
