// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func readAll(t *testing.T, r *Ring, a *tally) (last uint64) {
	t.Helper()
	for {
		rec, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return last
		}
		if err := a.take(rec); err != nil {
			t.Fatal(err)
		}
		last = rec.Key
	}
}

// peek is the key of the record that Next would return. After ok=false any record that comes later
// has a larger key than all that Next has returned.
func (r *reader) peek() (key uint64, ok bool, err error) {
	for {
		if r.rescue != nil {
			if key, ok := r.rescue.peek(); ok {
				return key, true, nil
			}
			return 0, false, r.life.Failed()
		}
		if r.life.over.Load() == overFailed {
			r.startRescue()
			continue
		}
		i := r.pick()
		if i < 0 {
			if err := r.sync(); err != nil {
				continue
			}
			if i = r.pick(); i < 0 {
				return 0, false, nil
			}
		}
		return r.follow[i].key, true, nil
	}
}

// TestFull fills a ring from one goroutine to the last segment but the reserve, uses that, and
// makes room by a cut, and by a mark's end.
func TestFull(t *testing.T) {
	everyKind(t, Options{Size: 256 << 10}, func(t *testing.T, r *Ring) {
		var h Hint
		n := uint32(0)
		fill := func() {
			t.Helper()
			for {
				if _, err := r.Append(&h, Now, payload(nil, 0, n, 300)); errors.Is(err, ErrFull) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		if !isClosed(r.Space()) {
			t.Error("there is room")
		}
		fill()
		if used := r.Used(); used != r.Size()-r.head.unit {
			t.Errorf("full with %d of %d in use", used, r.Size())
		}
		room := r.Space()
		if r.backing == nil && isClosed(room) { // else the tender may have had a segment, and told so
			t.Error("there is no room")
		}
		reserved := uint32(0)
		for {
			if _, err := r.AppendReserved(Now, payload(nil, 1, reserved, 500)); errors.Is(err, ErrFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			reserved++
		}
		if reserved < 7 || r.Used() != r.Size() {
			t.Errorf("%d reserved, %d in use", reserved, r.Used())
		}

		var a tally
		last := readAll(t, r, &a)
		if a.count != int(n+reserved) {
			t.Fatalf("%d of %d", a.count, n+reserved)
		}
		slot, ok := r.Put(Mark{First: 1, Last: last})
		if !ok {
			t.Fatal("no slot")
		}
		r.Cut(last)
		if r.backing == nil && isClosed(room) || r.Used() != r.Size() {
			t.Error("a mark covers everything")
		}
		r.Clear(slot)
		if !isClosed(room) {
			t.Error("there is room again")
		}
		if _, ok, err := r.Next(); ok || err != nil { // the lanes keep a segment each for a while
			t.Error(ok, err)
		}
		before := n
		fill()
		if n-before < before-3*12 {
			t.Errorf("%d fit now, %d did", n-before, before)
		}
		if _, err := r.AppendReserved(Now, payload(nil, 1, reserved, 500)); err != nil {
			t.Error(err)
		}
	})
}

// TestRoomInLanes: all the room there is lies in segments of idle lanes, whose records are done
// while the reader sleeps. It is woken, and frees them.
func TestRoomInLanes(t *testing.T) {
	r := mustOpen(t, &Options{Size: 256 << 10})
	woken := 0
	r.SetWake(func() { woken++ })
	for lane := uint8(reserved + 1); ; lane++ { // a segment each
		if _, err := r.Append(&Hint{lane: lane}, Now, payload(nil, 0, uint32(lane)-reserved-1, 100)); errors.Is(err,
			ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n := uint32(lane) + 1; n == r.active.Load() {
			r.addLane(n)
			r.lanes.all[n].state.Store(0)
		}
	}
	var a tally
	last := readAll(t, r, &a)
	slot, _ := r.Put(Mark{First: 1, Last: last})
	r.Cut(last)
	room := r.Space()
	if r.Sleep() || isClosed(room) {
		t.Fatal("there is something")
	}
	woken = 0
	r.Clear(slot)
	if woken != 1 {
		t.Fatalf("woken %d times", woken)
	}
	if readAll(t, r, &a); !isClosed(room) || r.Used() != 0 {
		t.Errorf("%d bytes are in use", r.Used())
	}
}

func TestLarge(t *testing.T) {
	everyKind(t, Options{Size: 256 << 10, MaxRecord: 60_000}, func(t *testing.T, r *Ring) {
		var h Hint
		if _, err := r.Append(&h, Now, make([]byte, 60_001)); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		var a tally
		n := uint32(0)
		for range 40 {
			for _, size := range []int{60_000, 0, 12, 4096 - recordHeader, 4096, 4096 - recordHeader + 1, 20_000} {
				for {
					_, err := r.Append(&h, Now, payload(nil, 0, n, max(size, 12)))
					if err == nil {
						n++
						break
					}
					if !errors.Is(err, ErrFull) {
						t.Fatal(err)
					}
					r.Cut(readAll(t, r, &a))
					_, _, _ = r.Next()
				}
			}
		}
		readAll(t, r, &a)
		if a.count != int(n) {
			t.Errorf("%d of %d", a.count, n)
		}
	})
}

func TestState(t *testing.T) {
	everyKind(t, Options{}, func(t *testing.T, r *Ring) {
		if r.State() != nil || r.Counter(3) != 0 || r.CutKey() != 0 || r.Marks() != nil {
			t.Error("not empty")
		}
		big := bytes.Repeat([]byte{7}, MaxState)
		for _, s := range [][]byte{[]byte("a"), big, {}, []byte("last")} {
			if err := r.SetState(s); err != nil {
				t.Fatal(err)
			}
			if got := r.State(); !bytes.Equal(got, s) {
				t.Errorf("%q", got)
			}
		}
		if err := r.SetState(append(big, 1)); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
		r.Count(3, 5)
		r.Count(3, 6)
		r.Count(15, 1)
		r.Cut(77)
		r.Cut(66)
		for i := range MaxMarks {
			if slot, ok := r.Put(Mark{
				First: uint64(1000 - i), Last: 2000, Lane: 3, Label: [24]byte{byte(i)},
				Slot: 99,
			}); !ok || slot != i {
				t.Error(slot, ok)
			}
		}
		if _, ok := r.Put(Mark{}); ok {
			t.Error("one too many")
		}
		r.Clear(10)
		check := func(r *Ring) {
			t.Helper()
			if r.Counter(3) != 11 || r.Counter(15) != 1 || r.CutKey() != 77 || string(r.State()) != "last" {
				t.Error(r.Counter(3), r.Counter(15), r.CutKey(), r.State())
			}
			marks := r.Marks()
			if len(marks) != MaxMarks-1 || marks[0] != (Mark{
				First: 1000 - 63, Last: 2000, Lane: 3, Label: [24]byte{63},
				Slot: 63,
			}) {
				t.Error(len(marks), marks[0])
			}
		}
		check(r)
		left, err := fromBytes(bytes.Clone(r.mem))
		if err != nil {
			t.Fatal(err)
		}
		check(left)
		if left.badMarks != 0 {
			t.Error(left.badMarks)
		}
	})
}

// TestStateCutShort tears the state that is being written, at every byte: the one before is found.
func TestStateCutShort(t *testing.T) {
	r := mustOpen(t, &Options{Size: 256 << 10})
	var pictures [][]byte
	for _, s := range []string{"first state", "second, longer state", "THIRD STATE"} {
		if err := r.SetState([]byte(s)); err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, bytes.Clone(r.mem[:segmentsAt+256<<10]))
	}
	const slot = int64(statesAt) + stateRoom // of the first and the third
	for n := range int64(stateHeader + 20) {
		torn := bytes.Clone(pictures[1])
		copy(torn[slot:slot+n], pictures[2][slot:])
		left, err := fromBytes(torn)
		if err != nil {
			t.Fatal(err)
		}
		if s := string(left.State()); s != "second, longer state" && (s != "THIRD STATE" || n < stateHeader+9) {
			t.Errorf("%d bytes of the third: %q", n, s)
		}
	}
}

func TestAfterClose(t *testing.T) {
	for _, end := range []func(*Ring) error{(*Ring).Close, (*Ring).Leave} {
		everyKind(t, Options{}, func(t *testing.T, r *Ring) {
			var h Hint
			if _, err := r.Append(&h, Now, []byte("x")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := end(r); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Append(&h, Now, []byte("x")); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			if _, err := r.Append(new(Hint), Now, []byte("x")); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			if _, err := r.AppendReserved(Now, []byte("x")); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			if _, ok, err := r.Next(); ok || err != nil {
				t.Error(ok, err)
			}
			if _, ok, err := r.peek(); ok || err != nil {
				t.Error(ok, err)
			}
			if r.Sleep() || !r.Drained() || !isClosed(r.Space()) {
				t.Error("not at its end")
			}
			if records, bytes := r.Appended(); records != 1 || bytes != 1 {
				t.Error(records, bytes)
			}
			if _, ok := r.Put(Mark{}); ok {
				t.Error("a mark")
			}
			r.Clear(0)
			r.Cut(5)
			r.Count(0, 1)
			r.Anchor()
			r.Rewind()
			_, _, _, _ = r.State(), r.Marks(), r.Lost(), r.Used()
			for _, n := range []int{0, MaxState} { // the longer one would need more memory
				if err := r.SetState(make([]byte, n)); !errors.Is(err, ErrClosed) || errors.Is(err, ErrFull) {
					t.Error(err)
				}
			}
		})
	}
}

func TestSeal(t *testing.T) {
	everyKind(t, Options{}, func(t *testing.T, r *Ring) {
		var h Hint
		if _, err := r.Append(&h, Now, payload(nil, 0, 0, 20)); err != nil {
			t.Fatal(err)
		}
		r.Seal()
		r.Seal()
		if _, err := r.Append(&h, Now, nil); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, err := r.AppendReserved(Now, payload(nil, 0, 1, 20)); err != nil {
			t.Error(err)
		}
		var a tally
		r.Cut(readAll(t, r, &a))
		if a.count != 2 || r.Failed() != nil {
			t.Error(a.count, r.Failed())
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Size: 1000},
		{Size: maxSize + 1},
		{Size: -1},
		{MaxRecord: -1},
		{Identity: make([]byte, maxIdentity+1)},
	} {
		if _, err := Open(&o); err == nil {
			t.Errorf("%+v is fine", o)
		}
	}
	r, err := Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Size() != defaultSize || r.head.maxRec != defaultMaxRecord || r.Path() != "" {
		t.Error(r.Size(), r.head.maxRec, r.Path())
	}
	if name := cleanName("a b/../c.d_-+@Z9"); name != "a_b____c_d_-+@Z9" {
		t.Error(name)
	}
}

// TestAllocs: an append allocates nothing, but for the few words that describe a segment.
func TestAllocs(t *testing.T) {
	if raceEnabled {
		needs.Skip(t, "the race detector allocates")
	}
	everyKind(t, Options{}, func(t *testing.T, r *Ring) {
		var h Hint
		p := make([]byte, 200)
		var buf []byte
		if n := testing.AllocsPerRun(5000, func() {
			key, err := r.Append(&h, Now, p)
			if err != nil {
				t.Fatal(err)
			}
			rec, ok, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				if buf, err = r.Copy(buf[:0], rec); err != nil {
					t.Fatal(err)
				}
				r.Cut(key - 1)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
