// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
)

// TestAppendAfter: what AppendAfter says comes before a record is where a Reader stands that gets
// it next, whatever was padded, however the journal was closed, and whichever goroutine appended
// it.
func TestAppendAfter(t *testing.T) {
	seed := rand.Uint64() >> 1
	t.Logf("seed %d", seed)
	for round := range uint64(40) {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { appendAfter(t, rand.New(rand.NewPCG(seed, round))) })
		})
	}
}

func appendAfter(t *testing.T, r *rand.Rand) {
	fs := newCrashFS(rand.New(rand.NewPCG(r.Uint64(), 1)))
	before := map[Position]Position{}
	keep := r.IntN(2) == 0 // all segments, or none that was read
	for range 12 {
		j, err := Open("d", &Options{
			FS: fs, SegmentBytes: minSegmentBytes, MaxBytes: 64 << 20,
			Report: func(err error) {
				if !errors.Is(err, errPower) {
					t.Error(err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { j.Close() })
		rd := mustReader(t, j, "r")
		stood := rd.Pos()
		for range r.IntN(20) {
			appendSome(t, j, r, before)
		}
		mustSync(t, j, j.Stats().Last)
		for {
			rec, ok, err := rd.TryNext()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			// A new cursor stands where the first segment begins.
			if prev := before[rec.Pos]; prev != stood && (prev != 0 || stood.off() != dataStart && stood != 0) {
				t.Fatalf("before %v came %v, but a reader stood at %v", rec.Pos, prev, stood)
			}
			stood = rd.Pos()
		}
		if !keep && stood > 0 {
			if err := rd.Commit(stood, nil); err != nil {
				t.Fatal(err)
			}
		}
		clean := r.IntN(2) == 0
		if clean {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
		fs.mu.Lock()
		fs.kill()
		fs.mu.Unlock()
		if !clean {
			_ = j.Close() // of a process that is gone
		}
		fs = fs.after
	}
}

// appendSome appends records from several goroutines and notes what is said to come before each.
// Their sizes often end a page, or leave 8 bytes of it.
func appendSome(t *testing.T, j *Journal, r *rand.Rand, before map[Position]Position) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 1 + r.IntN(8)*r.IntN(2) {
		size := r.IntN(300)
		switch room := pageUp(j.Stats().Last.off()) - j.Stats().Last.off(); r.IntN(6) {
		case 0:
			size = max(0, int(room)-recordHeader-8*r.IntN(4))
		case 1:
			size = padFrom + max(0, int(room)-recordHeader-8*r.IntN(4))
		case 2:
			size = r.IntN(40) * r.IntN(minSegmentBytes/10)
		}
		rec := make([]byte, size)
		all.Go(func() {
			prev, pos, err := j.AppendAfter(rec[:len(rec)/2], rec[len(rec)/2:])
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			before[pos] = prev
		})
	}
	all.Wait()
	switch p := j.Stats().Last; r.IntN(3) {
	case 0:
		mustSync(t, j, p)
	case 1:
		if err := j.Flush(bg, p); err != nil {
			t.Fatal(err)
		}
	}
}
