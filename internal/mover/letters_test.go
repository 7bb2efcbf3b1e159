// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/journal"
)

// refuse has a destination refuse the first entry of chunks of a tag.
func refuse(tag string) func(*job1) string {
	return func(j *job1) string {
		if j.c.Tag == tag {
			return "refused"
		}
		return "ok"
	}
}

// inLetters are the events of the dead letters in a Dir.
func inLetters(t *testing.T, dir string) (events []event, reasons map[string]bool) {
	t.Helper()
	reasons = map[string]bool{}
	found, ok := letters.Find(dir)
	if !ok {
		return nil, reasons
	}
	l, err := letters.Read(found)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Letters(func(e *letters.Entry) bool {
		if e.Err != nil {
			t.Error(e.Err)
			return true
		}
		c := *e.Chunk
		c.ID, c.UniqueID = make([]byte, idLen), true // the letter's own does not matter here
		events = append(events, read(&c).events...)
		reasons[e.Output+": "+e.Reason] = true
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return events, reasons
}

// TestDeadLetters: what a destination refuses for good is in a journal in Dir, and all else is
// delivered.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"with Dir": t.TempDir(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			d := &fake{answer: refuse("bad")}
			f := open(t, d, func(c *Config) { c.Dir, c.Identity = dir, "here" })
			f.must("good", 1, 0, 500, 10)
			f.must("bad", 2, 0, 1, 10)
			f.must("good", 1, 500, 1000, 10)
			if err := f.m.Flush(within(t, patience)); err != nil {
				t.Fatal(err)
			}
			f.close()
			s := f.m.Stats()
			want := Stats{Counts: Counts{Delivered: 1000, DeadLettered: 1}}
			if dir == "" {
				want.DeadLettered, want.Missed[Lost] = 0, 1
			}
			if s.Delivered != want.Delivered || s.DeadLettered != want.DeadLettered || s.Missed != want.Missed {
				t.Errorf("%+v", s)
			}
			f.mu.Lock()
			told := errors.Join(f.told...)
			f.mu.Unlock()
			if told == nil || !strings.Contains(told.Error(), "not liked") {
				t.Errorf("told: %v", told)
			}
			if dir == "" {
				return
			}
			events, reasons := inLetters(t, dir)
			if len(events) != 1 || events[0] != (event{"bad", 2, 0}) || !reasons["here: not liked"] {
				t.Errorf("%v, %v", events, reasons)
			}
		})
	}
}

// TestDeadLettersOfEqualEvents: events that are equal byte for byte are as many letters as chunks.
func TestDeadLettersOfEqualEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := open(t, &fake{answer: refuse("bad")}, func(c *Config) { c.Dir = dir })
	const times = 5
	for range times {
		f.must("bad", 1, 7, 8, 0)
		if err := f.m.Flush(within(t, patience)); err != nil {
			t.Fatal(err)
		}
	}
	f.close()
	if events, _ := inLetters(t, dir); len(events) != times {
		t.Errorf("%v", events)
	}
}

// TestDeadLettersShareDir: another process has the folder of the letters for a while. Nothing is
// lost by that, and what was not a letter when Close ended is one for the next process.
func TestDeadLettersShareDir(t *testing.T) {
	t.Parallel()
	dir, shm := t.TempDir(), shmDir(t)
	other, err := journal.Open(filepath.Join(dir, letters.Dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	set := func(c *Config) { c.Dir, c.Shm = dir, shm }
	f := open(t, &fake{answer: refuse("bad")}, set)
	f.must("bad", 1, 0, 1, 0)
	f.must("good", 2, 0, 10, 0)
	eventually(t, "the good ones are delivered", func() bool { return f.m.Stats().Delivered == 10 })
	if err := f.abandon(0); err == nil {
		t.Fatal("all is delivered, though one event is refused and could not be kept")
	}
	f.law()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	f = open(t, &fake{answer: refuse("bad")}, set)
	if err := f.m.Flush(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if s := f.m.Stats(); s.DeadLettered != 1 || s.Missed[Lost] != 0 {
		t.Errorf("%+v", s)
	}
	f.close()
	if events, _ := inLetters(t, dir); len(events) != 1 || events[0] != (event{"bad", 1, 0}) {
		t.Errorf("%v", events)
	}
}
