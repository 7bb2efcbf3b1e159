// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	killWriters = 5
	killWindows = 64 // that the ledger remembers
)

// ledger is a page that the child and the test share: it outlives the child.
type ledger struct {
	accepted [killWriters]atomic.Uint64 // records whose Append has returned
	windows  [killWindows]struct {
		number, last uint64
		upTo         [killWriters]uint64 // a writer's records before this one lie in this window or before it
	}
}

func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	n := int(unsafe.Sizeof(ledger{}))
	if err := f.Truncate(int64(n)); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*ledger)(unsafe.Pointer(unsafe.SliceData(b))), nil
}

func init() { roles["killed"] = killedChild }

// killedChild appends as fast as it can, but for pauses, from several goroutines to a ring that is
// used over and over, while its reader cuts windows, marks them, and clears the marks out of order.
func killedChild() error {
	dir := os.Getenv("DIR")
	led, err := openLedger(filepath.Join(dir, "ledger"))
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(os.Getenv("SIZE"), 10, 64)
	if err != nil {
		return err
	}
	r, err := Open(&Options{Dir: filepath.Join(dir, "rings"), Name: "killed", Size: size})
	if err != nil {
		return err
	}
	for w := range uint32(killWriters) {
		go func() {
			rnd := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(w)))
			var h [2]Hint
			var buf []byte
			for n := uint32(0); ; n++ {
				if rnd.IntN(2000) == 0 { // memory goes back meanwhile
					<-time.After(time.Duration(rnd.IntN(20)) * time.Millisecond)
				}
				size := rnd.IntN(400)
				if rnd.IntN(300) == 0 {
					size = rnd.IntN(40_000)
				}
				buf = payload(buf, w, n, size)
				for {
					_, err := r.Append(&h[rnd.IntN(2)], int64(n), buf)
					if err == nil {
						break
					}
					if !errors.Is(err, ErrFull) {
						panic(err)
					}
					<-r.Space()
				}
				led.accepted[w].Store(uint64(n) + 1)
			}
		}()
	}
	var upTo [killWriters]uint64
	var slots []int
	newest := uint64(0)
	for number := uint64(1); ; number++ {
		first, last := uint64(0), uint64(0)
		var lane uint16
		for n := 0; n < 700; n++ {
			rec, ok, err := r.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			w, i, err := parsePayload(rec.Data)
			if err != nil {
				return err
			}
			if rec.Key < newest || uint64(i) != upTo[w] {
				return fmt.Errorf("writer %d: record %d with key %d after %d with %d", w, i, rec.Key, upTo[w], newest)
			}
			if first == 0 {
				first, lane = rec.Key, rec.Lane
			}
			last, newest = rec.Key, rec.Key
			upTo[w] = uint64(i) + 1
		}
		if first == 0 {
			number--
			if len(slots) > 0 { // they may hold all the room there is
				r.Clear(slots[0])
				slots = slots[1:]
			}
			continue
		}
		// (Equal keys do not happen here often enough to matter, and if they did the check would
		// still hold: the window ends at a key.)
		for {
			key, ok, err := r.peek()
			if err != nil {
				return err
			}
			if !ok || key != last {
				break
			}
			rec, _, _ := r.Next()
			w, i, _ := parsePayload(rec.Data)
			upTo[w] = uint64(i) + 1
		}
		win := &led.windows[number%killWindows]
		win.number, win.last, win.upTo = number, last, upTo
		m := Mark{First: first, Last: last, Lane: lane}
		binary.LittleEndian.PutUint64(m.Label[:], number)
		slot, ok := r.Put(m)
		if !ok {
			return errors.New("no slot")
		}
		slots = append(slots, slot)
		r.Cut(last)
		for len(slots) > 5 {
			i := rand.IntN(len(slots) - 3) // the oldest goes soon: the ledger remembers only so many
			if number%8 == 0 {
				i = 0
			}
			r.Clear(slots[i])
			slots = append(slots[:i], slots[i+1:]...)
		}
	}
}

// killedSizes are those of rings with segments of different sizes.
var killedSizes = []int{1 << 20, 16 << 20, 256 << 10, 4 << 20}

// TestKilled kills the child with SIGKILL again and again. Adopt must yield what was accepted and
// not done, whole, once, in order per goroutine, and nothing else.
func TestKilled(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("SPILLWAY_KILLS"))
	if rounds == 0 {
		rounds = 4
	}
	total := 0
	for round := range rounds {
		dir := t.TempDir()
		led, err := openLedger(filepath.Join(dir, "ledger"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childRole+"=killed", "DIR="+dir,
			"SIZE="+strconv.Itoa(killedSizes[round%len(killedSizes)]))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill() }()
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		goal := uint64(1000 + rand.IntN(20_000))
		deadline := time.Now().Add(4 * time.Minute)
		for led.accepted[rand.IntN(killWriters)].Load() < goal {
			select {
			case err := <-exited:
				t.Fatal("the child is gone: ", err)
			case <-time.After(time.Millisecond):
			}
			if time.Now().After(deadline) {
				t.Fatal("the child does not get on")
			}
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-exited
		n := checkKilled(t, dir, led)
		t.Logf("round %d: %d adopted of %d", round, n, led.accepted[0].Load())
		total += n
		if t.Failed() {
			return
		}
	}
	if total == 0 {
		t.Error("nothing was left in any round")
	}
}

func checkKilled(t *testing.T, dir string, led *ledger) int {
	t.Helper()
	rings, err := Adopt(filepath.Join(dir, "rings"), "killed", nil, func(err error) { t.Error(err) })
	if err != nil || len(rings) != 1 {
		t.Fatalf("%d rings, %v", len(rings), err)
	}
	r := rings[0]
	defer r.Close()

	// Where every writer's records that are not done begin, and which done ones a mark still
	// covers.
	cut := r.CutKey()
	var from [killWriters]uint64
	type span struct{ from, to uint64 }
	covered := make([][]span, killWriters)
	windows := map[uint64][killWriters]uint64{0: {}}
	for i := range led.windows {
		if win := &led.windows[i]; win.number != 0 {
			windows[win.number] = win.upTo
			if win.last == cut {
				from = win.upTo
			}
		}
	}
	for _, m := range r.Marks() {
		number := binary.LittleEndian.Uint64(m.Label[:])
		if m.First > cut {
			continue // not cut yet: all of it is still there anyway
		}
		before, ok1 := windows[number-1]
		upTo, ok2 := windows[number]
		if !ok1 || !ok2 {
			t.Fatalf("window %d is not in the ledger", number)
		}
		for w := range killWriters {
			covered[w] = append(covered[w], span{before[w], upTo[w]})
		}
	}
	want := func(w uint32, n uint64) bool {
		if n >= from[w] {
			return true
		}
		for _, s := range covered[w] {
			if s.from <= n && n < s.to {
				return true
			}
		}
		return false
	}
	var next [killWriters]uint64
	skip := func(w uint32, to uint64) {
		for ; next[w] < to; next[w]++ {
			if want(w, next[w]) {
				t.Errorf("writer %d: record %d is lost (accepted %d, not done from %d)", w, next[w],
					led.accepted[w].Load(), from[w])
				return
			}
		}
	}
	count, key, lane := 0, uint64(0), uint16(0)
	for !t.Failed() {
		rec, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if rec.Key < key || rec.Key == key && rec.Lane <= lane {
			t.Fatalf("key %d lane %d after %d lane %d", rec.Key, rec.Lane, key, lane)
		}
		key, lane = rec.Key, rec.Lane
		w, i, err := parsePayload(rec.Data)
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(i)
		if n < next[w] {
			t.Fatalf("writer %d: record %d again, or out of turn: after %d", w, n, next[w])
		}
		skip(w, n)
		if !want(w, n) {
			t.Fatalf("writer %d: record %d is done", w, n)
		}
		if rec.Time != int64(n) {
			t.Fatalf("writer %d: record %d has time %d", w, n, rec.Time)
		}
		next[w] = n + 1
		count++
	}
	for w := range uint32(killWriters) {
		accepted := led.accepted[w].Load()
		skip(w, accepted)
		if next[w] > accepted+1 {
			t.Errorf("writer %d: %d records, %d accepted", w, next[w], accepted)
		}
	}
	if !r.Drained() {
		t.Error("not drained")
	}
	if lost := r.Lost(); lost != (Loss{}) {
		t.Errorf("lost: %+v", lost)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "rings")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	if again, err := Adopt(filepath.Join(dir, "rings"), "killed", nil, func(err error) { t.Error(err) }); err != nil ||
		len(again) != 0 {
		t.Errorf("adopted again: %v, %v", again, err)
	}
	return count
}
