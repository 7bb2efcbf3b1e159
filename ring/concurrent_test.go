// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// everyKind runs a test on plain memory, which the race detector sees, on such that comes and goes
// as that of a file does, and on shared memory where there is any.
func everyKind(t *testing.T, o Options, f func(t *testing.T, r *Ring)) {
	t.Helper()
	for _, kind := range []string{"heap", "lent", "shared"} {
		t.Run(kind, func(t *testing.T) {
			o := o
			switch kind {
			case "lent":
				r, _ := openLent(t, &o, 1<<40, false)
				f(t, r)
				return
			case "shared":
				o.Dir = sharedDir(t)
			}
			f(t, mustOpen(t, &o))
		})
	}
}

func mustOpen(t *testing.T, o *Options) *Ring {
	t.Helper()
	r, err := Open(o)
	needs.Have(t, !errors.Is(err, ErrUnsupported), "%v", err)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// A tally checks records made by payload: each writer's come whole, in order, none twice, none
// missing.
type tally struct {
	next  map[uint32]uint32 // by writer
	key   uint64
	lane  uint16
	count int
}

// payload is the n-th record of a writer: its length and content follow from the two.
func payload(dst []byte, writer, n uint32, size int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst[:0], writer)
	dst = binary.LittleEndian.AppendUint32(dst, n)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	for i := len(dst); i < size; i++ {
		dst = append(dst, byte(uint32(i)*7+writer*31+n))
	}
	return dst
}

var errPayload = errors.New("not a record of the test")

func parsePayload(b []byte) (writer, n uint32, err error) {
	if len(b) < 12 {
		return 0, 0, fmt.Errorf("%w: %d bytes", errPayload, len(b))
	}
	writer, n = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if size := int(binary.LittleEndian.Uint32(b[8:])); max(size, 12) != len(b) {
		return 0, 0, fmt.Errorf("%w: writer %d, %d: %d bytes, not %d", errPayload, writer, n, len(b), size)
	}
	for i := 12; i < len(b); i++ {
		if b[i] != byte(uint32(i)*7+writer*31+n) {
			return 0, 0, fmt.Errorf("%w: writer %d, %d: byte %d is wrong", errPayload, writer, n, i)
		}
	}
	return writer, n, nil
}

func (a *tally) take(rec Record) error {
	if rec.Key < a.key || rec.Key == a.key && rec.Lane <= a.lane {
		return fmt.Errorf("key %d lane %d after %d lane %d", rec.Key, rec.Lane, a.key, a.lane)
	}
	a.key, a.lane = rec.Key, rec.Lane
	writer, n, err := parsePayload(rec.Data)
	if err != nil {
		return err
	}
	if a.next == nil {
		a.next = map[uint32]uint32{}
	}
	if n != a.next[writer] {
		return fmt.Errorf("writer %d: record %d, not %d", writer, n, a.next[writer])
	}
	a.next[writer]++
	a.count++
	return nil
}

// TestConcurrent has many goroutines append to a small ring, changing lanes as they go, while the
// reader follows, marks, cuts, clears out of order, and sleeps.
func TestConcurrent(t *testing.T) {
	each := uint32(20_000)
	if testing.Short() {
		each = 3000
	}
	everyKind(t, Options{Size: 256 << 10}, func(t *testing.T, r *Ring) {
		const writers = 9
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
				rnd := rand.New(rand.NewPCG(1, uint64(w)))
				var hints [3]Hint
				var buf []byte
				var last uint64
				for n := uint32(0); n < each; {
					size := rnd.IntN(300)
					if rnd.IntN(500) == 0 {
						size = rnd.IntN(20_000)
					}
					buf = payload(buf, w, n, size)
					key, err := r.Append(&hints[rnd.IntN(3)], int64(n), buf)
					switch {
					case errors.Is(err, ErrFull):
						select {
						case <-r.Space():
						case <-time.After(4 * time.Minute):
							t.Errorf("writer %d waits for room: used %d", w, r.Used())
							return
						}
						continue
					case err != nil:
						t.Error(err)
						return
					case key <= last:
						t.Errorf("writer %d: key %d after %d", w, key, last)
						return
					}
					last = key
					n++
					if rnd.IntN(50) == 0 {
						runtime.Gosched()
					}
				}
			})
		}
		var a tally
		rnd := rand.New(rand.NewPCG(2, 2))
		var slots []int
		quiet := time.NewTimer(4 * time.Minute)
		for a.count < writers*int(each) {
			first, last, n := uint64(0), uint64(0), rnd.IntN(400)
			for range n {
				rec, ok, err := r.Next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if err := a.take(rec); err != nil {
					t.Fatal(err)
				}
				if first == 0 {
					first = rec.Key
				}
				last = rec.Key
			}
			for { // equal keys stay together
				key, ok, err := r.peek()
				if err != nil || !ok || key != last {
					break
				}
				rec, _, _ := r.Next()
				if err := a.take(rec); err != nil {
					t.Fatal(err)
				}
			}
			if first != 0 {
				if slot, ok := r.Put(Mark{First: first, Last: last}); ok {
					slots = append(slots, slot)
				}
				r.Cut(last)
			}
			for len(slots) > 4 || len(slots) > 0 && first == 0 {
				i := rnd.IntN(len(slots))
				r.Clear(slots[i])
				slots = append(slots[:i], slots[i+1:]...)
			}
			if first == 0 && !r.Sleep() {
				select {
				case <-wake:
				case <-quiet.C:
					t.Fatalf("nothing comes after %d records; used %d", a.count, r.Used())
				}
			}
		}
		all.Wait()
		for _, slot := range slots {
			r.Clear(slot)
		}
		if _, ok, _ := r.Next(); ok {
			t.Error("there is more")
		}
		records, _ := r.Appended()
		if records != uint64(a.count) || a.count != writers*int(each) {
			t.Errorf("%d read of %d", a.count, records)
		}
		for r.Used() > r.Size()/4+16<<10 { // in lanes, from which the reader takes it now and then
			if _, ok, err := r.Next(); ok || err != nil {
				t.Fatal(ok, err)
			}
			select {
			case <-quiet.C:
				t.Fatalf("%d bytes still in use", r.Used())
			default:
			}
		}
	})
}
