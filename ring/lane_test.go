// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// TestLaneAlone: no two lanes share a pair of cache lines.
func TestLaneAlone(t *testing.T) {
	if size := unsafe.Sizeof(lane{}); size%128 != 0 {
		t.Errorf("a lane has %d bytes", size)
	}
	if at := uintptr(unsafe.Pointer(newLanes())); at%128 != 0 {
		t.Errorf("lanes begin at %#x", at)
	}
}

// TestBusyLanes: goroutines that were taken off their cores in the middle of an append keep nobody
// else from appending, only the reader from going on, and the first to finish wakes it.
func TestBusyLanes(t *testing.T) {
	everyKind(t, Options{}, func(t *testing.T, r *Ring) {
		woken := 0
		r.SetWake(func() { woken++ })
		var a tally
		readAll(t, r, &a) // sees all lanes idle
		type held struct {
			l   *lane
			old uint64
		}
		var stuck []held
		for i := uint32(reserved + 1); i < r.active.Load(); i++ {
			if old, ok := r.lanes.all[i].try(); ok {
				stuck = append(stuck, held{&r.lanes.all[i], old})
			}
		}
		before := r.active.Load()
		var h Hint
		for n := range uint32(10) {
			if _, err := r.Append(&h, Now, payload(nil, 0, n, 20)); err != nil {
				t.Fatal(err)
			}
		}
		if r.active.Load() != before+1 || uint32(h.lane) != before {
			t.Error(r.active.Load(), before, h)
		}
		if readAll(t, r, &a); a.count != 0 || r.Sleep() {
			t.Errorf("%d records, though older ones may come", a.count)
		}
		if woken != 0 {
			t.Error("woken early")
		}
		for i, s := range stuck {
			if i == len(stuck)-1 {
				if readAll(t, r, &a); a.count != 0 || r.Sleep() {
					t.Errorf("%d records, though older ones may come", a.count)
				}
				woken = 0
			}
			r.release(s.l, int64(s.old>>1))
		}
		if woken != 1 {
			t.Errorf("woken %d times", woken)
		}
		if readAll(t, r, &a); a.count != 10 {
			t.Errorf("%d records", a.count)
		}
	})
}

// TestCountingWakesNobody: Appended takes each lane for a moment, which is nothing to the reader
// unless he saw it busy.
func TestCountingWakesNobody(t *testing.T) {
	r := mustOpen(t, nil)
	woken := 0
	r.SetWake(func() { woken++ })
	if r.Sleep() {
		t.Fatal("there is something")
	}
	if r.Appended(); woken != 0 {
		t.Error("woken")
	}
	if _, err := r.Append(new(Hint), Now, nil); err != nil || woken != 1 {
		t.Error(woken, err)
	}
}

// TestAllLanesBusy goes beyond what there can be.
func TestAllLanesBusy(t *testing.T) {
	r := mustOpen(t, &Options{})
	for range maxLanes - reserved - 1 {
		if l, _ := r.acquire(new(Hint)); l == nil {
			t.Fatal("no lane")
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := r.Append(new(Hint), Now, nil); err != nil {
			t.Error(err)
		}
	})
	r.release(&r.lanes.all[maxLanes-1], 0)
	all.Wait()
	for i := reserved + 1; i < maxLanes-1; i++ {
		r.release(&r.lanes.all[i], 0)
	}
}

// TestCoarse: where the clock stands still, keys are in order all the same.
func TestCoarse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if !r.clock.coarse {
			t.Fatal("the clock of a bubble moves")
		}
		var all sync.WaitGroup
		for w := range uint32(4) {
			all.Go(func() {
				var h [3]Hint
				last := uint64(0)
				for n := range uint32(1000) {
					key, err := r.Append(&h[n%3], Now, payload(nil, w, n, 20))
					if err != nil || key <= last {
						t.Error(key, last, err)
					}
					last = key
				}
			})
		}
		var a tally
		for a.count < 4000 && !t.Failed() {
			readAll(t, r, &a)
		}
		all.Wait()
	})
}

// TestWallTime: a record without a time of its own has the wall time at its append, also after the
// system's clock was set.
func TestWallTime(t *testing.T) {
	r := mustOpen(t, nil)
	var h Hint
	check := func(from time.Time) {
		t.Helper()
		if _, err := r.Append(&h, Now, nil); err != nil {
			t.Fatal(err)
		}
		rec, ok, err := r.Next()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if at := time.Unix(0, rec.Time); at.Before(from.Add(-time.Millisecond)) ||
			at.After(time.Now().Add(time.Millisecond)) {
			t.Errorf("%v is not between %v and now", at, from)
		}
	}
	check(time.Now())
	r.clock.wall.Add(-int64(time.Hour)) // as though the system's clock had been put forward
	r.Anchor()
	check(time.Now())
	if _, err := r.Append(&h, 0, nil); err != nil {
		t.Fatal(err)
	}
	if rec, _, _ := r.Next(); rec.Time != 0 {
		t.Error(rec.Time)
	}
}

// TestBornBusy: an appender that was taken off its core in a lane's very first append, before the
// reader ever looked, keeps the reader from going on for as long as it takes: its record may be the
// oldest of all.
func TestBornBusy(t *testing.T) {
	r := mustOpen(t, nil)
	first, slow := new(Hint), new(Hint)
	l, old := r.acquire(slow)
	if _, err := r.Append(first, Now, payload(nil, 0, 0, 20)); err != nil {
		t.Fatal(err)
	}
	var a tally
	for range 5 {
		if readAll(t, r, &a); a.count != 0 {
			t.Fatal("out of turn")
		}
	}
	if _, err := r.add(l, uint16(slow.lane), int64(old>>1), Now, payload(nil, 0, 1, 20)); err != nil {
		t.Fatal(err)
	}
	if readAll(t, r, &a); a.count != 2 {
		t.Errorf("%d records", a.count)
	}
}

// TestOrderFromBirth watches the order of keys in the first moments of many rings, when lanes are
// new.
func TestOrderFromBirth(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for range rounds {
		r, err := Open(&Options{Size: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for w := range uint32(4) {
			all.Go(func() {
				var h Hint
				for n := range uint32(500) {
					if _, err := r.Append(&h, Now, payload(nil, w, n, 20+int(w)*50)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		var a tally
		for a.count < 2000 && !t.Failed() {
			if readAll(t, r, &a); a.count%3 == 0 {
				r.Sleep()
			}
		}
		all.Wait()
		r.Close()
	}
}
