// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package ring

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func ringOf(r *Ring) string { return filepath.Join(r.Path(), ringFile) }

// TestTruncatedUnderAppenders cuts the ring's file while goroutines append and the reader reads:
// the ring fails, nobody crashes, and what was appended is either read or counted.
func TestTruncatedUnderAppenders(t *testing.T) {
	for _, to := range []int64{0, segmentsAt, segmentsAt + 100_000, segmentsAt + 300_000} {
		r := mustOpen(t, &Options{Dir: sharedDir(t), Size: 1 << 20})
		r.warm(t)
		var failed sync.WaitGroup
		for w := range uint32(4) {
			failed.Go(func() {
				var h Hint
				var buf []byte
				for n := uint32(0); ; n++ {
					buf = payload(buf, w, n, 200)
					_, err := r.Append(&h, Now, buf)
					for ; errors.Is(err, ErrFull); _, err = r.Append(&h, Now, buf) {
						<-r.Space()
					}
					if errors.Is(err, ErrFailed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		last := map[uint32]uint32{}
		read, bytes := uint64(0), uint64(0)
		var key uint64
		deadline := time.Now().Add(4 * time.Minute)
		var end error
		for i := 0; end == nil; i++ {
			if i == 20 {
				truncate(t, ringOf(r), to)
			}
			for range 500 {
				rec, ok, err := r.Next()
				end = err
				if !ok {
					break
				}
				if rec.Key < key {
					t.Fatalf("key %d after %d", rec.Key, key)
				}
				key = rec.Key
				read++
				bytes += uint64(len(rec.Data))
				b, err := r.Copy(nil, rec)
				if err != nil {
					if !errors.Is(err, ErrFailed) {
						t.Fatal(err)
					}
					continue
				}
				w, n, err := parsePayload(b)
				if err != nil {
					t.Fatal(err)
				}
				if before, ok := last[w]; ok && n <= before {
					t.Fatalf("writer %d: %d after %d", w, n, before)
				}
				last[w] = n
			}
			if i < 1000 {
				r.Cut(key)
			}
			if time.Now().After(deadline) {
				t.Fatal("does not end")
			}
		}
		failed.Wait()
		if !errors.Is(end, ErrFailed) || !errors.Is(r.Failed(), ErrFailed) {
			t.Fatal(end, r.Failed())
		}
		if _, err := r.AppendReserved(Now, nil); !errors.Is(err, ErrFailed) {
			t.Error(err)
		}
		records, all := r.Appended()
		lost := r.Lost()
		if !r.Drained() || records != read+lost.Records || all != bytes+lost.Bytes {
			t.Errorf("cut to %d: %d appended, %d read, %+v lost", to, records, read, lost)
		}
		t.Logf("cut to %d: %d appended, %d lost: %v", to, records, lost.Records, end)
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Append(new(Hint), Now, nil); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// TestTruncatedHead takes the head's memory away: everything that is kept there meets the fault.
func TestTruncatedHead(t *testing.T) {
	for name, f := range map[string]func(*Ring){
		"put":     func(r *Ring) { r.Put(Mark{}) },
		"clear":   func(r *Ring) { r.marked[3] = true; r.Clear(3) },
		"cut":     func(r *Ring) { r.Cut(7) },
		"state":   func(r *Ring) { _ = r.SetState([]byte("x")) },
		"count":   func(r *Ring) { r.Count(3, 1) },
		"guard":   func(r *Ring) { _ = r.Guard(func() { r.mem[0]++ }) },
		"append":  func(r *Ring) { _, _ = r.Append(new(Hint), Now, []byte("x")) },
		"reserve": func(r *Ring) { _, _ = r.AppendReserved(Now, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := mustOpen(t, &Options{Dir: sharedDir(t), Size: 256 << 10})
			r.warm(t)
			woken := make(chan struct{}, 10)
			r.SetWake(func() { woken <- struct{}{} })
			truncate(t, ringOf(r), 0)
			f(r)
			if err := r.Failed(); !errors.Is(err, ErrFailed) {
				t.Fatal(err)
			}
			<-woken
			if _, ok, err := r.Next(); ok || !errors.Is(err, ErrFailed) {
				t.Error(ok, err)
			}
			if lost := r.Lost(); lost.Records != 0 {
				t.Error(lost)
			}
		})
	}
}

// TestForeignPanic: only faults of the ring's own memory are turned into errors.
func TestForeignPanic(t *testing.T) {
	r := mustOpen(t, &Options{Dir: sharedDir(t), Size: 256 << 10})
	for _, f := range []func(){func() { panic("mine") }, func() { _ = make([]int, 0)[r.head.maxRec] }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("swallowed")
				}
			}()
			_ = r.Guard(f)
		}()
	}
	if r.Failed() != nil {
		t.Error(r.Failed())
	}
}

// TestTruncatedAdopted cuts the file before it is adopted, and while it is read.
func TestTruncatedAdopted(t *testing.T) {
	for _, early := range []bool{true, false} {
		dir := sharedDir(t)
		r := mustOpen(t, &Options{Dir: dir, Name: "own", Size: 256 << 10})
		var hints [2]Hint
		total := uint64(0)
		for n := uint32(0); ; n++ {
			if _, err := r.Append(&hints[n%2], Now, payload(nil, n%2, n, 100)); err != nil {
				break
			}
			total++
		}
		file := ringOf(r)
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		cut := func() { truncate(t, file, segmentsAt+100_000) }
		if early {
			cut()
		}
		var told []error
		rings, err := Adopt(dir, "own", nil, func(err error) { told = append(told, err) })
		if err != nil || len(rings) != 1 || early != (len(told) == 1) || early &&
			!strings.Contains(told[0].Error(), file) {
			t.Fatal(len(rings), err, told)
		}
		r = rings[0]
		count := uint64(0)
		for {
			if count == 100 && !early {
				cut()
			}
			rec, ok, err := r.Next()
			if err != nil && (early || !errors.Is(err, ErrFailed)) { // Copy may have met the fault
				t.Fatal(err)
			}
			if !ok {
				break
			}
			count++
			if b, err := r.Copy(nil, rec); err == nil {
				if _, _, err := parsePayload(b); err != nil {
					t.Fatal(err)
				}
			}
		}
		lost := r.Lost()
		t.Logf("%d of %d read, %+v lost", count, total, lost)
		if count < 300 || count == total || lost.Regions == 0 || count+lost.Records > total ||
			count+lost.Records < total-60 {
			t.Errorf("%d of %d read, %+v lost", count, total, lost)
		}
		r.Put(Mark{First: 1, Last: 2})
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOverwritten: a live ring whose memory somebody changes fails; what is garbled is not
// returned.
func TestOverwritten(t *testing.T) {
	r := mustOpen(t, &Options{Dir: sharedDir(t), Size: 256 << 10})
	var h Hint
	for n := range uint32(500) {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 100)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(ringOf(r), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	garbage := make([]byte, 1000)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range garbage {
		garbage[i] = byte(rnd.Uint32())
	}
	if _, err := f.WriteAt(garbage, segmentsAt+10_000); err != nil {
		t.Fatal(err)
	}
	count, prev := 0, -1
	for {
		rec, ok, err := r.Next()
		if !ok {
			if !errors.Is(err, ErrFailed) || !errors.Is(err, ErrCorrupt) {
				t.Error(err)
			}
			break
		}
		_, n, err := parsePayload(rec.Data)
		if err != nil && r.Failed() == nil {
			continue // the reader of a live ring trusts what lies within a record
		}
		if err != nil || int(n) <= prev {
			t.Fatal(n, prev, err)
		}
		prev = int(n)
		count++
	}
	if lost := r.Lost(); count < 480 || count >= 500 || lost.Records == 0 || lost.Records > 10 {
		t.Errorf("%d read, %+v lost", count, lost)
	}
}
