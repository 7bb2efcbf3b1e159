// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestLostSegments damages segments in each way, with cursors at each kind of place. What a cursor
// has yet to read is read, or its loss is told and counted; nothing is told where nothing is lost;
// and no file is removed that held something.
func TestLostSegments(t *testing.T) {
	kinds := map[string]func(t *testing.T, path string){
		"none":    func(*testing.T, string) {},
		"deleted": func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"cut to nothing": func(t *testing.T, path string) {
			must(t, os.Truncate(path, 0))
		},
		"cut short": func(t *testing.T, path string) { must(t, os.Truncate(path, 20_000)) },
		"zeroed": func(t *testing.T, path string) {
			fi, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, make([]byte, fi.Size()), 0o600))
		},
		"header": func(t *testing.T, path string) { overwrite(t, path, 0, make([]byte, pageSize)) },
		"garbage": func(t *testing.T, path string) {
			overwrite(t, path, 0, []byte(strings.Repeat("garbage!", pageSize/8)))
		},
		"header and tails": func(t *testing.T, path string) { overwrite(t, path, 0, make([]byte, dataStart)) },
	}
	for _, places := range [][2]int{{-1, -1}, {5, 5}, {5, 60}, {60, 150}, {150, 150}, {-2, -2}, {60, -2}} {
		for _, closed := range []bool{true, false} {
			l := writeLosable(t, places, closed)
			for kind, damage := range kinds {
				for hurt := range 3 { // of three segments
					t.Run(fmt.Sprintf("%s/%d/%v/closed=%t", kind, hurt, places, closed), func(t *testing.T) {
						l.test(t, damage, kind, hurt)
					})
				}
			}
		}
	}
}

// losable is a journal that is to be damaged.
type losable struct {
	dir   string
	all   []Position
	where [2]int // so many of all the cursors a and b have passed
	low   int    // the lesser of them
	first uint32 // number of the first segment
}

func overwrite(t *testing.T, path string, off int64, b []byte) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(b, off)
	must(t, errors.Join(err, f.Close()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeLosable(t *testing.T, places [2]int, closed bool) *losable {
	dir := t.TempDir()
	o := &Options{SegmentBytes: minSegmentBytes, Reserve: 64 << 10}
	j := mustOpen(t, dir, o)
	rs := []*Reader{mustReader(t, j, "a"), mustReader(t, j, "b")}
	var all []Position
	for i := 0; len(j.Stats().segmentsOf()) < 3 || i < 160; i++ {
		p := mustAppend(t, j, testRecord(uint64(i), 1000))
		mustSync(t, j, p)
		all = append(all, p)
	}
	where := [2]int{}
	for i, n := range places {
		switch n {
		case -2: // at the end
			n = len(all) - 1
		case -1:
			continue
		}
		must(t, rs[i].SkipTo(all[n]))
		must(t, rs[i].Commit(all[n], nil))
		where[i] = n + 1
	}
	low := min(where[0], where[1])
	first := all[0].seq()
	if closed {
		must(t, j.Close())
	} else { // as kill -9 leaves it
		copied := t.TempDir()
		for os.CopyFS(copied, os.DirFS(dir)) != nil { // a freed segment just got another name
			copied = t.TempDir()
		}
		must(t, j.Close())
		dir = copied
	}
	return &losable{dir, all, where, low, first}
}

func (l *losable) test(t *testing.T, damage func(*testing.T, string), kind string, hurt int) {
	dir, all, where := t.TempDir(), l.all, l.where
	must(t, os.CopyFS(dir, os.DirFS(l.dir)))
	path := filepath.Join(dir, segmentName(l.first+uint32(hurt)))
	before, err := os.ReadFile(path)
	if err != nil { // freed, and used again
		return
	}
	var h segmentHeader
	if h.parse(before) != nil || h.kind != segmentLive {
		return
	}
	damage(t, path)
	hurtBytes, _ := os.ReadFile(path)
	var told reports
	j := mustOpen(t, dir, &Options{SegmentBytes: minSegmentBytes, Reserve: 64 << 10, Report: told.add})
	missing := 0
	for i, name := range []string{"a", "b"} {
		got := map[Position]bool{}
		r := mustReader(t, j, name)
		for {
			rec, ok, err := r.TryNext()
			must(t, err)
			if !ok {
				break
			}
			got[rec.Pos] = true
		}
		for _, p := range all[where[i]:] {
			if !got[p] {
				missing++
			}
		}
	}
	st := j.Stats()
	must(t, j.Close())
	losses := slices.DeleteFunc(slices.Clone(told.all()), func(err error) bool { return !errors.Is(err, ErrCorrupt) })
	if missing > 0 && (len(losses) == 0 || st.Damaged+st.QuarantinedFiles == 0) {
		t.Errorf("%d records are missing, cursors at %v of %d; told %v, counted %d and %d", missing, where, len(all),
			told.all(), st.Damaged, st.QuarantinedFiles)
	}
	if missing == 0 && kind == "none" && len(losses) > 0 {
		t.Errorf("nothing is missing, and told is %v", losses)
	}
	if strings.HasPrefix(kind, "header") && kind != "header and tails" || kind == "garbage" {
		if missing > 0 {
			t.Errorf("%d records are missing behind a header that tails can make again: %v", missing, told.all())
		}
	}
	// What was in the file is in it, or in quarantine.
	if len(hurtBytes) > dataStart && l.low < len(all) && all[l.low].seq() <= l.first+uint32(hurt) && kind != "none" {
		if _, err := os.Stat(path); err != nil {
			aside, _ := filepath.Glob(filepath.Join(dir, quarantineDir, filepath.Base(path)+"*"))
			if len(aside) == 0 {
				t.Error("the file is gone, and not set aside")
			}
		}
	}
}

// segmentsOf is a list as long as there are segments with records.
func (s Stats) segmentsOf() []struct{} { return make([]struct{}, s.Segments) }

// TestRemovedWhileOpen: what is written to a file that has no name any more is not stored, and
// neither Sync nor Check says that it is.
func TestRemovedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	var told reports
	j := mustOpen(t, dir, &Options{Report: told.add})
	defer j.Close()
	mustSync(t, j, mustAppend(t, j, []byte("a")))
	must(t, j.Check())
	removeAll(dir)
	p := mustAppend(t, j, []byte("b"))
	must(t, j.Flush(bg, p))
	if err := j.Check(); !errors.Is(err, errRemoved) {
		t.Errorf("check after the directory was removed: %v", err)
	}
	if err := j.Sync(bg, p); !errors.Is(err, errRemoved) {
		t.Errorf("sync after the directory was removed: %v", err)
	}
	if _, err := j.Append([]byte("c")); !errors.Is(err, errRemoved) {
		t.Errorf("append after that: %v", err)
	}
	if j.Stats().Err == nil {
		t.Error("no error in the statistics")
	}
}

func removeAll(dir string) {
	err := os.RemoveAll(dir)
	for err != nil { // the allocator may be making a file just then
		err = os.RemoveAll(dir)
	}
}

// TestSpareRemoved: a file that holds nothing is no loss when others remove it, and the journal
// makes another.
func TestSpareRemoved(t *testing.T) {
	dir := t.TempDir()
	var told reports
	j := mustOpen(t, dir, &Options{SegmentBytes: minSegmentBytes, MaxBytes: 8 * minSegmentBytes, Report: told.add})
	r := mustReader(t, j, "r")
	for round := range 40 {
		for range 100 { // more than a segment
			if _, err := j.Append(testRecord(uint64(round), 1000)); errors.Is(err, ErrFull) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		last := j.Stats().Last
		mustSync(t, j, last)
		must(t, r.SkipTo(last))
		must(t, r.Commit(last, nil))
		j.mu.Lock()
		for _, s := range j.free {
			_ = os.Remove(s.path)
		}
		j.mu.Unlock()
	}
	must(t, j.Close())
	if len(told.all()) > 0 {
		t.Errorf("told %v", told.all())
	}
}

// TestDeviceFailsForAWhile: a device that fails for half a minute costs no record, nor has anything
// set aside.
func TestDeviceFailsForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 1)))
		var told reports
		j := mustOpen(t, "d", &Options{FS: c, Report: told.add})
		defer j.Close()
		var last Position
		for i := range 20 {
			last = mustAppend(t, j, testRecord(uint64(i), 1000))
		}
		mustSync(t, j, last)
		r := mustReader(t, j, "r")
		well := time.Now().Add(30 * time.Second)
		c.mu.Lock()
		c.failing = func(op, _ string) error {
			if op == "read" && time.Now().Before(well) {
				return syscall.EIO
			}
			return nil
		}
		c.mu.Unlock()
		n := 0
		for {
			_, ok, err := r.TryNext()
			if err != nil {
				<-time.After(200 * time.Millisecond) // of the bubble
				continue
			}
			if !ok {
				break
			}
			n++
		}
		if n != 20 || len(told.all()) > 0 {
			t.Errorf("read %d records; told %v", n, told.all())
		}
	})
}

// TestPlaceCursor: a cursor is placed in one step, wherever that is cut off.
func TestPlaceCursor(t *testing.T) {
	for cut := 1; ; cut++ {
		c := newCrashFS(rand.New(rand.NewPCG(uint64(cut), 1)))
		j := mustOpen(t, "d", &Options{FS: c, SegmentBytes: minSegmentBytes, Report: func(error) {}})
		var pos []Position
		for i := range 10 {
			pos = append(pos, mustAppend(t, j, testRecord(uint64(i), 100)))
		}
		mustSync(t, j, pos[9])
		must(t, j.PlaceCursor("old", pos[3], []byte("state")))
		c.mu.Lock()
		c.cutIn = cut
		c.mu.Unlock()
		err := j.PlaceCursor("new", pos[5], []byte("placed"))
		c.mu.Lock()
		done := !c.dead
		if done {
			c.cut()
		}
		c.mu.Unlock()
		_ = j.Close()
		j = mustOpen(t, "d", &Options{FS: c.after, SegmentBytes: minSegmentBytes, Report: func(error) {}})
		names := j.Cursors()
		if slices.Contains(names, "new") {
			p, state := mustReader(t, j, "new").Committed()
			if p != pos[5] || string(state) != "placed" {
				t.Errorf("cut at %d: the cursor is at %v with %q", cut, p, state)
			}
		} else if err == nil {
			t.Errorf("cut at %d: no cursor", cut)
		}
		must(t, j.Close())
		if done {
			return
		}
	}
}

// TestRemovedWhileAppending: readers give up the file of the segment that others append to.
func TestRemovedWhileAppending(t *testing.T) {
	c := newCrashFS(rand.New(rand.NewPCG(1, 2))) // it lets the journal go on
	j := mustOpen(t, "d", &Options{FS: c, Report: func(error) {}})
	defer j.Close()
	var rs []*Reader
	for i := range 100 {
		rs = append(rs, mustReader(t, j, fmt.Sprint(i)))
	}
	p := mustAppend(t, j, []byte("gone"))
	mustSync(t, j, p)
	must(t, c.Remove(filepath.Join("d", segmentName(p.seq()))))
	j.mu.Lock()
	j.seg.bad = true // nobody waits a minute for it
	j.mu.Unlock()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range 400_000 { // of 24 bytes, in 16 MiB
			select {
			case <-stop:
				return
			default:
			}
			if _, err := j.Append([]byte("x")); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for _, r := range rs {
		for range 2 * readTries {
			if rec, ok, _ := r.TryNext(); ok && rec.Pos == p {
				t.Error("what is gone was read")
			}
		}
	}
	close(stop)
	<-done
}
