// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// kindOf is the last character of the mark that covers a chunk, 0 if there is none.
func kindOf(m *Mover, id string) (kind byte) {
	raw, number, _ := parseRun([idLen]byte([]byte(id)))
	for _, k := range m.cur.Load().r.Marks() {
		kRaw, kNumber, _ := parseRun(k.Label)
		if string(k.Label[:idLen-1]) == id[:idLen-1] || m.cfg.Ordered && kRaw == raw && kNumber <= number {
			kind = k.Label[idLen-1]
		}
	}
	return kind
}

// Chunks that go to the destination because there is no spill have marks that say so.
func TestStuckGoesToTheDestination(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		d := &fake{answer: later}
		f := open(t, d, func(c *Config) { c.Dir, c.Ordered = filepath.Join(file, "spills"), ordered })
		n := uint32(0)
		eventually(t, "stuck", func() bool {
			for range 100 {
				if f.post("t"+strconv.Itoa(int(n%3)), 1, n, 100) == nil {
					n++
				}
			}
			stuck := 0
			if err := f.m.ask(t.Context(), func() { stuck = len(f.m.stuck) }); err != nil {
				t.Fatal(err)
			}
			return stuck > 0
		})
		left := 0
		d.mu.Lock()
		d.answer = func(j *job1) string { // the mover's goroutine asks
			if l, ok := f.m.active.(*leftover); ok && l != nil {
				left++
				if kind := kindOf(f.m, j.id); kind != toDestination && kind != runsToDestination {
					t.Errorf("the mark of chunk %s ends with %q", j.id, kind)
				}
			}
			return "ok"
		}
		jobs := d.pending
		d.mu.Unlock()
		for _, j := range append([]*job1(nil), jobs...) {
			d.finish(j, "ok")
		}
		f.close()
		if left == 0 {
			t.Error("nothing was left")
		}
	}
}

// Runs that the spill has no room for have a mark without those before them.
func TestStuckRuns(t *testing.T) {
	d := &fake{answer: later}
	f := open(t, d, func(c *Config) { c.Dir, c.MaxDisk, c.Ordered = t.TempDir(), MinMaxDisk, true })
	n := uint32(0)
	eventually(t, "a window is in the spill in part", func() (partly bool) {
		for range 100 {
			if f.post("t"+strconv.Itoa(int(n%2)), 1, n, 300) == nil {
				n++
			}
		}
		if err := f.m.ask(t.Context(), func() {
			if len(f.m.stuck) == 0 {
				return
			}
			first := f.m.stuck[0]
			if q := first.under; q.to != runsToSpill || q.left != len(f.m.stuck) {
				t.Errorf("%d stuck runs; under their mark, %q, are %d", len(f.m.stuck), q.to, q.left)
			}
			raw, number, _ := parseRun(first.id)
			for _, k := range f.m.cur.Load().r.Marks() {
				if kRaw, n, _ := parseRun(k.Label); kRaw == raw && (n != number || k.First != first.first) {
					t.Errorf("a mark is from run %d, key %d, on; stuck are those from %d, key %d", n, k.First, number, first.first)
				}
			}
			partly = number > 0
		}); err != nil {
			t.Fatal(err)
		}
		return partly
	})
	d.open()
	f.close()
	ordered(t, d.all(), map[uint32]uint32{1: n})
}
