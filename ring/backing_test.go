// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errNoRoom = errors.New("no room")

// A lender is a file system of so many bytes for a ring in plain memory, which the race detector
// sees. What it has not lent holds a pattern: a write there is found.
type lender struct {
	mu   sync.Mutex
	mem  []byte
	lent []bool // by page
	room int64
	bad  error // as it was met
	zero bool  // it lends by writing zeros, over what is there as well
}

const unlent = 0xa5

func openLent(t *testing.T, o *Options, room int64, zero bool) (*Ring, *lender) {
	t.Helper()
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &lender{mem: r.mem, lent: make([]bool, len(r.mem)/pageSize), room: room, zero: zero}
	for page := range segmentsAt / pageSize {
		l.lent[page] = true
	}
	for i := range r.mem[segmentsAt:] {
		r.mem[segmentsAt+i] = unlent
	}
	r.pool = newPool(r.pool.n)
	r.backing = newBacking(l.allocate)
	r.backing.punch, r.backing.overwrites = l.punch, zero
	r.backing.states.Store(stateRoom)
	if err := r.segments.begin(); err != nil {
		t.Fatal(err)
	}
	r.startTender()
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		l.check(t)
	})
	return r, l
}

func (l *lender) allocate(from, to int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from >= to && l.bad == nil {
		l.bad = fmt.Errorf("asked for what lies from %d to %d", from, to)
	}
	var pages []int64
	for at := from; at < to; at += pageSize {
		if !l.lent[at/pageSize] {
			pages = append(pages, at)
		}
	}
	if int64(len(pages)*pageSize) > l.room {
		return errNoRoom
	}
	l.room -= int64(len(pages) * pageSize)
	for _, at := range pages {
		l.intact(at)
		l.lent[at/pageSize] = true
		clear(l.mem[at : at+pageSize])
	}
	if l.zero {
		clear(l.mem[from:to])
	}
	return nil
}

func (l *lender) punch(from, to int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := from; at < to; at += pageSize {
		if !l.lent[at/pageSize] {
			continue
		}
		l.lent[at/pageSize] = false
		l.room += pageSize
		for i := range l.mem[at : at+pageSize] {
			l.mem[at+int64(i)] = unlent
		}
	}
	return nil
}

// intact says that nobody has written to a page that was not lent.
func (l *lender) intact(at int64) {
	if slices.ContainsFunc(l.mem[at:at+pageSize], func(c byte) bool { return c != unlent }) && l.bad == nil {
		l.bad = errors.New("a page was written to before there was memory")
	}
}

func (l *lender) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for page := segmentsAt / pageSize; page < len(l.lent); page++ {
		if !l.lent[page] {
			l.intact(int64(page) * pageSize)
		}
	}
	if l.bad != nil {
		t.Error(l.bad)
	}
}

func (l *lender) give(n int64) {
	l.mu.Lock()
	l.room += n
	l.mu.Unlock()
}

func (l *lender) used() (n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for page := segmentsAt / pageSize; page < len(l.lent); page++ {
		if l.lent[page] {
			n += pageSize
		}
	}
	return n
}

// poll waits until f is true.
func poll(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !f(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain for: ", what)
		}
	}
}

// TestLent fills rings whose memory ends early: what is full is full, nothing is lost, and when
// there is more again they go on. When nobody needs it the memory goes back.
func TestLent(t *testing.T) {
	for _, size := range []int64{256 << 10, 1 << 20, 16 << 20} {
		for _, room := range []int64{blockLen + reserveLen, 200 << 10, 2 << 20} {
			r, l := openLent(t, &Options{Size: size},
				max(room, 2*segmentSize(size)*int64(min(1, blockLen/segmentSize(size)))), false)
			hints := make([]Hint, 3)
			n := uint32(0)
			fill := func() (full bool) {
				t.Helper()
				for range 3 * size / 300 {
					_, err := r.Append(&hints[rand.IntN(len(hints))], Now, payload(nil, 0, n, rand.IntN(600)))
					if errors.Is(err, ErrFull) {
						return true
					}
					if err != nil {
						t.Fatal(err)
					}
					n++
				}
				return false
			}
			if !fill() {
				t.Fatalf("%d of %d: never full", room, size)
			}
			short := r.backing.isShort()
			if size > 2*room && !short {
				t.Errorf("%d of %d: has all there is to have", room, size)
			}
			if short && (r.Size() >= size || r.Size() > r.Used()) {
				t.Errorf("%d of %d: is full with %d of %d in use", room, size, r.Used(), r.Size())
			}
			if err := r.Short(); short && !errors.Is(err, errNoRoom) || r.Short() != nil {
				t.Error(err)
			}
			if _, err := r.AppendReserved(Now, payload(nil, 1, 0, 500)); err != nil {
				t.Errorf("%d of %d: the reserve: %v", room, size, err)
			}
			before := n
			var a tally
			r.Cut(readAll(t, r, &a))
			l.give(2 * size)
			poll(t, "room again", func() bool {
				_, _, _ = r.Next()
				fill()
				last := readAll(t, r, &a)
				r.Cut(last)
				return !r.backing.isShort() && n > before
			})
			if a.count != int(n)+1 {
				t.Errorf("%d read of %d", a.count, n+1)
			}
			least := l.idle(r)
			poll(t, "what is not used to go back", func() bool {
				r.wanted.Store(true)
				if _, ok, err := r.Next(); ok || err != nil {
					t.Fatal(ok, err)
				}
				r.pool.reserve(0, 0)
				return l.used() <= least
			})
			if _, err := r.Append(&hints[0], Now, payload(nil, 0, n, 100)); err != nil {
				t.Error(err)
			}
		}
	}
}

// idle is how much a ring has that is not used.
func (l *lender) idle(r *Ring) (n int64) {
	for at := range r.pool.n {
		n += idleLen(at, r.head.unit)
	}
	return n
}

// TestLentConcurrent has many append to a ring whose memory comes and goes, more than there is at
// times.
func TestLentConcurrent(t *testing.T) {
	each := uint32(20_000)
	if testing.Short() || raceEnabled {
		each = 4000
	}
	for i, size := range []int64{256 << 10, 4 << 20, 256 << 10, 4 << 20} {
		const writers = 6
		r, l := openLent(t, &Options{Size: size}, 300<<10, i >= 2)
		wake := make(chan struct{}, 1)
		r.SetWake(func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		var all sync.WaitGroup
		for w := range uint32(writers) {
			all.Go(func() {
				rnd := rand.New(rand.NewPCG(3, uint64(w)))
				var h Hint
				var buf []byte
				for n := uint32(0); n < each; {
					size := rnd.IntN(300)
					if rnd.IntN(300) == 0 {
						size = rnd.IntN(30_000)
					}
					buf = payload(buf, w, n, size)
					space := r.Space()
					switch _, err := r.Append(&h, Now, buf); {
					case errors.Is(err, ErrFull):
						<-space
					case err != nil:
						t.Error(err)
						return
					default:
						n++
					}
				}
			})
		}
		var stop atomic.Bool
		var giver sync.WaitGroup
		giver.Go(func() {
			for rnd := rand.New(rand.NewPCG(4, 4)); !stop.Load(); runtime.Gosched() {
				n := rnd.Int64N(1 << 20)
				l.give(n)
				runtime.Gosched()
				l.give(-n)
			}
		})
		var a tally
		quiet := time.NewTimer(4 * time.Minute)
		for a.count < writers*int(each) {
			if last := readAll(t, r, &a); last > 0 {
				r.Cut(last)
				continue
			}
			if !r.Sleep() {
				select {
				case <-wake:
				case <-quiet.C:
					t.Fatalf("nothing comes after %d records; used %d of %d", a.count, r.Used(), r.Size())
				}
			}
		}
		all.Wait()
		stop.Store(true)
		giver.Wait()
	}
}

// TestTenderWritesOver nothing where memory is got by writing zeros: a segment that somebody
// appends to gets its own.
func TestTenderWritesOver(t *testing.T) {
	r, l := openLent(t, &Options{Size: 16 << 20}, 1<<40, true)
	var h Hint
	n := uint32(0)
	appended := make(chan bool, 1)
	var once sync.Once
	r.backing.moves.Add(2) // it has had some before
	r.backing.allocate = func(from, to int64) error {
		// What the tender asks for comes when an appender has asked, and written, too.
		if from > segmentsAt && from < r.head.offset(1) && to-from > blockLen {
			once.Do(func() { <-appended })
		}
		return l.allocate(from, to)
	}
	for ; int64(n+1)*1100 < r.head.unit; n++ {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	appended <- true
	r.backing.tend()
	poll(t, "segments ahead", func() bool { return r.pool.count.Load() > fewAhead })
	adopted := &segmentReader{segmentFacts: r.pool.segments[0].segmentFacts, pos: segmentsAt, end: r.head.offset(1)}
	found := uint32(0)
	for adopted.next(&r.notes) {
		found++
	}
	if found != n {
		t.Errorf("%d of %d records are there", found, n)
	}
}

// TestProvidedMeanwhile: the tender may be faster than an appender that has seen that a segment
// lacks memory.
func TestProvidedMeanwhile(t *testing.T) {
	r, _ := openLent(t, nil, 1<<30, false)
	at, _ := r.pool.takeFresh(1)
	s, off := &r.pool.segments[at], r.head.offset(at)
	if err := r.backing.get(off, off+2*blockLen); err != nil {
		t.Fatal(err)
	}
	s.has(2 * blockLen)
	if !r.provide(s, off, blockLen) || s.backed.Load() < 2*blockLen {
		t.Errorf("%d bytes", s.backed.Load())
	}
	r.pool.put(at, 1)
}

// TestGrowingState keeps the state that there is while there comes memory for a longer one, also
// where that is written.
func TestGrowingState(t *testing.T) {
	r, l := openLent(t, &Options{Size: 1 << 20}, 1<<20, true)
	r.backing.states.Store(pageSize)
	asked := 0
	r.backing.allocate = func(from, to int64) error {
		if err := l.allocate(from, to); err != nil || from >= segmentsAt {
			return err
		}
		asked++
		adopted := newRing()
		adopted.head, adopted.mem = r.head, r.mem
		if adopted.getState(); string(adopted.State()) != string(r.State()) {
			t.Errorf("there is a state of %d bytes, in place of %d", len(adopted.State()), len(r.State()))
		}
		return nil
	}
	for _, n := range []int{10, 5000, 4000, 20_000, MaxState} {
		if err := r.SetState(bytes.Repeat([]byte{'s'}, n)); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 6 {
		t.Errorf("asked %d times", asked)
	}
}

// TestShortPicks a segment that has the memory for a record, where there is no more and the first
// free one has too little.
func TestShortPicks(t *testing.T) {
	r, _ := openLent(t, &Options{Size: 16 << 20}, 2*blockLen+reserveLen, false)
	if at := r.tryObtain(1, 0, 100); at != 0 {
		t.Fatal(at)
	}
	more := r.fresh(100)
	r.pool.put(more, 1)
	r.backing.short.Store(true)
	if at := r.tryObtain(1, 1, reserveLen+100); at != more {
		t.Errorf("found segment %d, not %d", at, more)
	}
}

// TestTenderHangs: an append that finds no room while the tender has segments waits for these, but
// not for a file system that hangs; and it is told when the tender lets them go.
func TestTenderHangs(t *testing.T) {
	r, l := openLent(t, &Options{Size: 256 << 10}, 1<<40, false)
	hangs, goesOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.backing.moves.Add(2) // it has had some before
	r.backing.allocate = func(from, to int64) error {
		if to-from == r.head.unit { // the tender's: an appender gets several at once
			once.Do(func() { close(hangs) })
			<-goesOn
		}
		return l.allocate(from, to)
	}
	var h Hint
	for r.pool.count.Load() > fewAhead {
		if _, err := r.Append(&h, Now, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	<-hangs
	full := make(chan error, 1)
	go func() {
		for {
			if _, err := r.Append(&h, Now, make([]byte, 1000)); err != nil {
				full <- err
				return
			}
		}
	}()
	select {
	case err := <-full:
		if !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		if vain, moves := r.backing.vain.Load(), r.backing.moves.Load(); vain != moves {
			t.Errorf("it waited in vain for %d, not %d", vain, moves)
		}
		close(goesOn)
	case <-time.After(time.Minute):
		close(goesOn)
		t.Fatal("it waits for the file system")
	}
	poll(t, "word of room", func() bool { return isClosed(r.Space()) })
	if _, err := r.Append(&h, Now, make([]byte, 1000)); err != nil {
		t.Error(err)
	}
}

// TestTenderHangsOn: what one append waited for in vain the next does not wait for. The clock
// stands still here: to wait would be for ever.
func TestTenderHangsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := openLent(t, &Options{Size: 256 << 10}, 1<<40, false)
		for range 2 { // what the tender has is free when it rests
			for at := 0; at >= 0; {
				at = r.tryObtain(1, 0, 100)
			}
			synctest.Wait()
		}
		b := r.backing
		b.moves.Store(7)
		b.vain.Store(7)
		if at := r.awaitTender(1, 0, 100); at >= 0 || !b.missed.Load() {
			t.Errorf("obtained segment %d; missed: %t", at, b.missed.Load())
		}
		b.moves.Store(8)
	})
}
