// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestLargeRecords: whatever fits in an empty journal is appended sooner or later, however full it
// is and however large what came before, if someone reads.
func TestLargeRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 1 << 20
		j := mustOpen(t, "d", &Options{
			FS: newCrashFS(rand.New(rand.NewPCG(1, 1))), SegmentBytes: minSegmentBytes,
			MaxBytes: limit,
		})
		defer j.Close()
		r := mustReader(t, j, "r")
		for i, size := range []int{
			100, limit - dataStart - recordHeader, 1000, 900 << 10,
			limit - dataStart - recordHeader, 300 << 10, 300 << 10, 300 << 10, 300 << 10, 10,
		} {
			rec := testRecord(uint64(i), size)
			for {
				_, err := j.Append(rec)
				if err == nil {
					break
				}
				if !errors.Is(err, ErrFull) {
					t.Fatal(err)
				}
				// Someone reads what is there, then there is room.
				mustSync(t, j, j.Stats().Last)
				_, last := readAll(t, r)
				if last > 0 {
					if err := r.Commit(last, nil); err != nil {
						t.Fatal(err)
					}
				}
				<-j.Space()
			}
			mustSync(t, j, j.Stats().Last)
			if i%2 == 0 {
				got, last := readAll(t, r)
				if len(got) == 0 || !bytes.Equal(got[len(got)-1], rec) {
					t.Fatalf("record %d is not there", i)
				}
				if err := r.Commit(last, nil); err != nil {
					t.Fatal(err)
				}
			}
			if b := j.Stats().Bytes; b > limit {
				t.Fatalf("%d bytes on disk", b)
			}
		}
		if _, err := j.Append(make([]byte, limit-dataStart-recordHeader+1)); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	})
}

// TestOthersFillDisk: a journal on a disk where others take every byte that it gives back drains,
// however it ended before and however full it was; and once it is drained it takes records in
// turns, more of them than the file has room for that it keeps.
func TestOthersFillDisk(t *testing.T) {
	for _, end := range []string{"closed", "killed", "cut"} {
		for _, reserve := range []int64{0, 64 << 10} {
			for _, records := range []int{1, 8, 50, 62, 75, 175} {
				t.Run(fmt.Sprintf("%s/%d/%d", end, reserve, records), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { othersFillDisk(t, end, reserve, records) })
				})
			}
		}
	}
}

func othersFillDisk(t *testing.T, end string, reserve int64, records int) {
	c := newCrashFS(rand.New(rand.NewPCG(uint64(records), uint64(reserve))))
	o := &Options{FS: c, SegmentBytes: 256 << 10, MaxBytes: 4 << 20, Reserve: reserve, Report: func(error) {}}
	j := mustOpen(t, "d", o)
	r := mustReader(t, j, "r")
	must(t, r.Commit(0, nil))
	want := 0
	add := func() bool {
		p, err := j.Append(testRecord(uint64(want), 4000))
		if err != nil {
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			return false
		}
		mustSync(t, j, p)
		want++
		return true
	}
	synctest.Wait() // the reserve and a spare file are there
	c.fill()
	for want < records {
		if add() {
			continue
		}
		// Others let it have one more file, or less.
		c.mu.Lock()
		c.limit += 300 << 10
		c.mu.Unlock()
		<-time.After(2 * retrySpace) // of the bubble
		if !add() {
			t.Fatal("no room for a file more")
		}
		c.fill()
	}
	for range 3 { // started again and again without being read
		if end == "closed" {
			must(t, j.Close())
		}
		c.mu.Lock()
		if end == "killed" {
			c.kill()
		} else {
			c.cut()
		}
		c.mu.Unlock()
		_ = j.Close()
		c = c.after
		c.fill()
		o.FS = c
		j = mustOpen(t, "d", o)
		add()
		synctest.Wait()
		c.fill()
	}
	defer func() { j.Close() }()
	r = mustReader(t, j, "r")
	got := 0
	drain := func() {
		recs, last := readAll(t, r)
		got += len(recs)
		if last == 0 {
			return
		}
		state := []byte("state")
		if reserve > 0 {
			state = make([]byte, 10_000) // a larger file, which needs the reserve the first time
		}
		must(t, r.Commit(last, state))
	}
	drain()
	for enough, full := want+200, 0; want < enough; {
		<-time.After(2 * retrySpace) // the allocator has done what it can
		c.fill()
		switch {
		case add():
			full = 0
		case full > 3:
			t.Fatalf("a drained journal takes no more after %d records: %+v", want, j.Stats())
		default:
			full++
			drain()
		}
	}
	drain()
	if got != want {
		t.Errorf("%d records were read of %d", got, want)
	}
}

// TestFullDiskThatFails: what the allocator cannot do on a full disk it tries again after a while,
// and not at once.
func TestFullDiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
		var told reports
		j := mustOpen(t, "d", &Options{FS: c, SegmentBytes: 256 << 10, MaxBytes: 4 << 20})
		synctest.Wait() // a spare file is there
		must(t, j.Close())
		c.fill()
		// The disk keeps several versions of a page: where it is full, none can be written over.
		writes := 0
		c.failing = func(op, path string) error {
			if op != "write" || !strings.Contains(path, "seg-") {
				return nil
			}
			if writes++; writes == 1000 {
				t.Error("it tries all the time")
				c.limit = 0 // or it goes on for ever
			}
			return syscall.ENOSPC
		}
		j = mustOpen(t, "d", &Options{
			FS: c, SegmentBytes: 256 << 10, MaxBytes: 4 << 20, Reserve: 64 << 10,
			Report: told.add,
		})
		defer j.Close()
		<-time.After(10 * retrySpace) // of the bubble
		c.mu.Lock()
		n := writes
		c.failing, c.limit = nil, 0
		c.mu.Unlock()
		if n == 0 || n > 20 {
			t.Errorf("%d attempts in %v", n, 10*retrySpace)
		}
		if list := told.all(); len(list) != 1 || !errors.Is(list[0], syscall.ENOSPC) {
			t.Errorf("told: %v", list)
		}
		for {
			if _, err := j.Append(testRecord(1, 1000)); err == nil {
				break
			}
			<-j.Space()
		}
	})
}

// TestCannotRecycle: a freed segment that cannot get its new name is tried again and again, which
// is told once, and takes no number each time.
func TestCannotRecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
		var told reports
		j := mustOpen(t, "d", &Options{FS: c, SegmentBytes: minSegmentBytes, MaxBytes: 1 << 20, Report: told.add})
		defer j.Close()
		r := mustReader(t, j, "r")
		synctest.Wait()
		c.mu.Lock()
		c.failing = func(op, path string) error {
			if op == "rename" {
				return fmt.Errorf("rename %s: %w", path, syscall.EIO)
			}
			return nil
		}
		c.mu.Unlock()
		next := func() uint32 {
			j.mu.Lock()
			defer j.mu.Unlock()
			return j.nextSeq
		}
		was := next()
		for j.Stats().Segments < 2 {
			p, err := j.Append(testRecord(1, 10_000))
			if err != nil {
				break
			}
			mustSync(t, j, p)
		}
		_, last := readAll(t, r)
		must(t, r.Commit(last, nil))
		<-time.After(10 * retrySpace) // of the bubble
		if list := told.all(); len(list) != 1 || !errors.Is(list[0], syscall.EIO) {
			t.Errorf("told: %v", list)
		}
		if s := j.Stats(); s.Created+s.Recycled > 1 {
			t.Errorf("%d files made and %d used again", s.Created, s.Recycled)
		}
		if n := next(); n > was+1 {
			t.Errorf("number %d was next, now it is %d", was, n)
		}
		c.mu.Lock()
		c.failing = nil
		c.mu.Unlock()
		for range 20 {
			for {
				p, err := j.Append(testRecord(1, 10_000))
				if err == nil {
					mustSync(t, j, p)
					break
				}
				<-j.Space()
			}
			if _, last := readAll(t, r); last > 0 {
				must(t, r.Commit(last, nil))
			}
		}
		if list := told.all(); len(list) != 1 {
			t.Errorf("told: %v", list)
		}
	})
}

// TestNameTaken: a directory that has the name of a segment to come stops nothing after a restart.
func TestNameTaken(t *testing.T) {
	dir := t.TempDir()
	o := &Options{SegmentBytes: minSegmentBytes}
	j := mustOpen(t, dir, o)
	mustSync(t, j, mustAppend(t, j, testRecord(0, 100)))
	must(t, j.Close())
	list, err := os.ReadDir(dir)
	must(t, err)
	top := uint32(0)
	for _, e := range list {
		if seq, ok := segmentSeq(e.Name()); ok {
			top = max(top, seq)
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, segmentName(top+1)), 0o700))
	j = mustOpen(t, dir, o)
	r := mustReader(t, j, "r")
	for i := range 300 { // segments are begun, and used again
		mustSync(t, j, mustAppend(t, j, testRecord(uint64(i), 10_000)))
		if i%50 == 0 {
			_, last := readAll(t, r)
			must(t, r.Commit(last, nil))
		}
	}
}
