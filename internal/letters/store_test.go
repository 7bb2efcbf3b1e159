// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

// TestStoreLazy: a store that never gets a letter leaves nothing on the disk.
func TestStoreLazy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "letters")
	s := mustOpen(t, dir, nil)
	mustPut(t, s)
	if st := s.Stats(); st != (Stats{}) {
		t.Errorf("%+v", st)
	}
	mustClose(t, s)
	mustClose(t, s)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("there is a directory:", err)
	}
	if err := s.Put(t.Context(), letter("a", 1, 1)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, ok := Find(filepath.Dir(dir)); ok {
		t.Error("letters are found where none are")
	}
}

// TestStorePutTwice: the same letter is stored once, in one call or two, before and after a
// restart, and when it was taken out or packed otherwise.
func TestStorePutTwice(t *testing.T) {
	dir := filepath.Join(t.TempDir(), Dir)
	part := letter("b", 2, 2)
	part.Entries = []int{1, 4}
	packed := letter("a", 1, 3)
	packed.Chunk.Compressed, packed.Chunk.Compression, packed.Chunk.Entries = gzipped(packed.Chunk.Entries), "gzip", nil
	all := []Letter{letter("a", 1, 3), part, letter("a", 1, 3), packed}
	s := mustOpen(t, dir, nil)
	for range 2 {
		mustPut(t, s, all...)
	}
	want := Stats{Letters: 2, Events: 5}
	check := func(s *Store, want Stats) {
		t.Helper()
		if got := s.Stats(); got.Letters != want.Letters || got.Events != want.Events ||
			(got.Bytes > 0) != (want.Letters > 0) || got.Dropped != 0 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	check(s, want)
	bytes := s.Stats().Bytes
	mustClose(t, s)

	s = mustOpen(t, dir, nil)
	check(s, want)
	mustPut(t, s, all...)
	check(s, want)
	if got := s.Stats().Bytes; got != bytes {
		t.Errorf("%d bytes, %d before", got, bytes)
	}
	mustClose(t, s)

	taker := mustTake(t, dir, "")
	for _, e := range rest(t, taker) {
		if err := taker.Done(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(taker.Commit(), taker.Close()); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir, nil)
	check(s, Stats{})
	mustPut(t, s, append(all, letter("a", 3, 1))...)
	check(s, Stats{Letters: 1, Events: 1})
	if got := list(t, dir); !slices.Equal(got, []string{"a@3"}) {
		t.Errorf("%v", got)
	}
	if got, ok := Find(filepath.Dir(dir)); got != dir || !ok {
		t.Errorf("found %s, %v", got, ok)
	}
}

// TestStoreKnownMost: what is compared has a bound, and the oldest goes first.
func TestStoreKnownMost(t *testing.T) {
	s := &Store{known: map[key]journal.Position{}}
	at := func(i int) key { return key{1, byte(i), byte(i >> 8), byte(i >> 16)} }
	for i := range maxKnown + 10 {
		s.learn(at(i), journal.Position(i))
	}
	_, first := s.known[at(9)]
	_, second := s.known[at(10)]
	if len(s.known) != maxKnown || first || !second {
		t.Errorf("%d known, %v, %v", len(s.known), first, second)
	}
}

// TestStoreFull: a full store refuses and keeps what it has.
func TestStoreFull(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, &Options{MaxBytes: 256 << 10})
	n := 0
	var err error
	for ; err == nil && n < 10_000; n++ {
		err = s.Put(t.Context(), letter("a", uint64(n), 100))
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("after %d: %v", n, err)
	}
	n--
	if st := s.Stats(); st.Letters != int64(n) || st.Events != int64(100*n) || st.Bytes > 256<<10 ||
		st.Bytes < 100<<10 || st.Dropped != 0 {
		t.Errorf("%d letters: %+v", n, st)
	}
	huge := letter("a", 1, 1)
	huge.Chunk.Entries = make([]byte, 300<<10)
	if err := s.Put(t.Context(), huge); err != nil || s.Stats().Dropped != 1 {
		t.Error(err, s.Stats())
	}
	if err := s.Put(t.Context(), letter("a", uint64(n), 100), letter("a", 0, 100)); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	mustPut(t, s, letter("a", 0, 100)) // which it has
	if got := list(t, dir); len(got) != n {
		t.Errorf("%d letters are there, want %d", len(got), n)
	}
}

// TestStoreDropOldest: a full store that may, gives up the oldest, and accounts for each event,
// also over a restart.
func TestStoreDropOldest(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var told Stats
	o := &Options{MaxBytes: 256 << 10, DropOldest: true, Report: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		var d *DroppedError
		if !errors.As(err, &d) {
			if !strings.Contains(err.Error(), "byte limit is met") { // the journal tells it once
				t.Error(err)
			}
			return
		}
		told.Letters += d.Letters
		told.Events += d.Events
	}}
	dropped := int64(0)
	next := 0
	for range 3 {
		s := mustOpen(t, dir, o)
		for range 300 {
			mustPut(t, s, letter("a", uint64(next), 100))
			next++
		}
		st := s.Stats()
		dropped += st.Dropped
		if int64(100*next) != dropped+st.Events || st.Letters*100 != st.Events || st.Dropped == 0 {
			t.Errorf("%d events put, %d dropped in all, %+v", 100*next, dropped, st)
		}
		mustClose(t, s)
		if st := s.Stats(); len(list(t, dir)) != int(st.Letters) {
			t.Errorf("%d letters are there, %+v", len(list(t, dir)), st)
		}
	}
	if got, want := list(t, dir), fmt.Sprintf("a@%d", next-1); got[len(got)-1] != want ||
		got[0] != fmt.Sprintf("a@%d", next-len(got)) {
		t.Errorf("%s to %s are there, want the last %d up to %s", got[0], got[len(got)-1], len(got), want)
	}
	if told.Events != dropped || told.Letters*100 != dropped {
		t.Errorf("told %+v, dropped %d", told, dropped)
	}
	// One that fills nearly all drives out all others, and goes when it is the oldest.
	s := mustOpen(t, dir, o)
	before := s.Stats().Events
	mustPut(t, s, letter("big", 1, 14_000))
	if st := s.Stats(); st.Events != 14_000 || st.Dropped != before {
		t.Errorf("%+v, %d before", st, before)
	}
	mustPut(t, s, letter("a", 1, 10_000))
	if st := s.Stats(); st.Events != 10_000 || st.Dropped != before+14_000 {
		t.Errorf("%+v, %d before", st, before)
	}
}

// TestStoreLocked: one store at a time has the directory, from its first letter on; ctx ends a wait
// for others of the same store.
func TestStoreLocked(t *testing.T) {
	dir := t.TempDir()
	first, second := mustOpen(t, dir, nil), mustOpen(t, dir, nil)
	mustPut(t, first, letter("a", 1, 1))
	if err := second.Put(t.Context(), letter("a", 2, 1)); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if _, err := Take(dir, "", nil); !errors.Is(err, ErrLocked) ||
		!strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Error(err)
	}
	mustClose(t, first)
	mustPut(t, second, letter("a", 2, 1))
	if st := second.Stats(); st.Letters != 2 {
		t.Errorf("%+v", st)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	second.turn <- struct{}{}
	if err := second.Put(ctx, letter("a", 3, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-second.turn
}

// TestStoreConcurrent: several outputs put at the same time, some of it twice.
func TestStoreConcurrent(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, nil)
	const outputs, each = 4, 50
	var wg sync.WaitGroup
	for o := range outputs {
		for range 2 {
			wg.Go(func() {
				for i := range each {
					if err := s.Put(t.Context(), letter(fmt.Sprint(o), uint64(i), 2)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	got := list(t, dir)
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != outputs*each || s.Stats().Letters != outputs*each {
		t.Errorf("%d letters, %+v", n, s.Stats())
	}
}

func TestOptions(t *testing.T) {
	if _, err := Open(t.TempDir(), &Options{MaxBytes: 1000}); err == nil {
		t.Error("MaxBytes of 1000 is taken")
	}
	if got := oneLine(" a\n\tb\xff " + strings.Repeat("x", 2*maxReason)); !strings.HasPrefix(got, "a b\ufffd x") ||
		len(got) > maxReason+5 || strings.Contains(got, "\n") {
		t.Errorf("%q", got[:40])
	}
}

// TestStoreRests: a few seconds after its last letter a store lets others take letters out, and
// goes on with the next one, which it knows again.
func TestStoreRests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), Dir)
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for round := range 3 {
			if err := s.Put(t.Context(), letter("a", 1, 1), letter("a", uint64(10+round), 1)); err != nil {
				t.Fatal(err)
			}
			if _, err := Take(dir, "", nil); !errors.Is(err, ErrLocked) {
				t.Fatalf("taken while it is in use: %v", err)
			}
			<-time.After(2 * idleAfter)
			synctest.Wait()
			k, err := Take(dir, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Stats().Letters; n != 4 {
			t.Errorf("%d letters, want 4", n)
		}
	})
}
