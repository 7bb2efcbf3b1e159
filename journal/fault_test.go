// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// reports collects what a journal tells.
type reports struct {
	mu   sync.Mutex
	list []error
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, err)
}

func (r *reports) all() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

// TestFault fails a kind of call for a while. What was flushed or synced before stays, everyone is
// told, and the journal goes on by itself.
func TestFault(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			t.Run(op+"/"+errno.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testFault(t, op, errno) })
			})
		}
	}
}

func testFault(t *testing.T, op string, errno syscall.Errno) {
	var failing atomic.Bool
	c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
	c.failing = func(o, path string) error {
		if failing.Load() && o == op && strings.Contains(path, "seg-") {
			return errno
		}
		return nil
	}
	var told reports
	j := mustOpen(t, "d", &Options{FS: c, Report: told.add})
	defer j.Close()
	var want [][]byte
	add := func() (Position, error) {
		rec := testRecord(uint64(len(want)), 1000)
		p, err := j.Append(rec)
		if err == nil {
			want = append(want, rec)
		}
		return p, err
	}
	p, _ := add()
	mustSync(t, j, p)
	p, _ = add()
	if err := j.Flush(bg, p); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	failing.Store(true)
	p, _ = add()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := j.Sync(bg, p); !errors.Is(err, errno) {
				t.Errorf("sync: %v", err)
			}
		})
	}
	wg.Wait()
	if err := j.Flush(bg, p); op == "write" && !errors.Is(err, errno) {
		t.Errorf("flush: %v", err)
	}
	if _, err := add(); !errors.Is(err, errno) || errors.Is(err, ErrFull) != (errno == syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	space := j.Space()
	<-time.After(10 * time.Second)
	select {
	case <-space:
		t.Error("space while the disk fails")
	default:
	}
	if j.Stats().Err == nil {
		t.Error("no error in the statistics")
	}
	failing.Store(false)
	<-space
	p, err := add()
	if err != nil {
		t.Fatal(err)
	}
	mustSync(t, j, p)
	synctest.Wait()
	list := told.all()
	var rec *RecoveredError
	if len(list) != 2 || !errors.Is(list[0], errno) || !errors.As(list[1], &rec) {
		t.Errorf("reported: %v", list)
	}
	// Everything that was appended without an error is there, also after a power cut, which takes
	// all that a failed sync did not write.
	c.mu.Lock()
	c.cut()
	c.mu.Unlock()
	j2 := mustOpen(t, "d", &Options{FS: c.after})
	defer j2.Close()
	got, _ := readAll(t, mustReader(t, j2, "r"))
	if len(got) != len(want) {
		t.Fatalf("%d records of %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("record %d differs", i)
		}
	}
}

// TestNoSpace fills a disk that is smaller than the journal's limit: Append answers ErrFull with
// the cause, and Space tells when there is room.
func TestNoSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
		c.limit = 600 << 10
		var told reports
		j := mustOpen(t, "d", &Options{FS: c, SegmentBytes: minSegmentBytes, MaxBytes: 1 << 30, Report: told.add})
		defer j.Close()
		rec := testRecord(1, 5000)
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = j.Append(rec)
		}
		if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) || n < 80 {
			t.Fatalf("%d records, then %v", n, err)
		}
		mustSync(t, j, j.Stats().Last)
		space := j.Space()
		<-time.After(10 * time.Second)
		select {
		case <-space:
			t.Error("space on a full disk")
		default:
		}
		c.mu.Lock()
		c.limit *= 2
		c.mu.Unlock()
		<-space
		p := mustAppend(t, j, rec)
		mustSync(t, j, p)
	})
}

// TestSyncReturnsByContext: nothing that the disk does keeps Sync beyond its context.
func TestSyncReturnsByContext(t *testing.T) {
	c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
	hang, hung := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h := &hangFS{FS: c, sync: func() { once.Do(func() { close(hung); <-hang }) }}
	j := mustOpen(t, "d", &Options{FS: h})
	p := mustAppend(t, j, []byte("x"))
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error)
	go func() { done <- j.Sync(ctx, p) }()
	<-hung
	// Meanwhile others append and flush.
	q := mustAppend(t, j, []byte("y"))
	if err := j.Flush(bg, q); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(hang)
	mustSync(t, j, q)
}

type hangFS struct {
	FS
	sync func()
}

type hangFile struct {
	File
	h *hangFS
}

func (h *hangFS) Create(path string) (File, error) {
	f, err := h.FS.Create(path)
	return hangFile{f, h}, err
}

func (h *hangFS) Open(path string) (File, error) {
	f, err := h.FS.Open(path)
	if err != nil {
		return nil, err
	}
	return hangFile{f, h}, nil
}

func (f hangFile) WriteAt(b []byte, off int64) (int, error) {
	return f.File.WriteAt(b, off)
}

func (f hangFile) Datasync() error {
	if b := make([]byte, 1); true {
		if _, err := f.ReadAt(b, dataStart); err == nil && b[0] != 0 { // not that of a file being prepared
			f.h.sync()
		}
	}
	return f.File.Datasync()
}

func TestReadOnlyDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		// The superuser may write anywhere, but not below a file.
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(filepath.Join(file, "d"), nil); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("error does not name the path: %v", err)
		}
		return
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error does not name the path: %v", err)
	}
}

// TestDamage breaks bytes in the middle of a segment: they are reported once, kept in quarantine,
// and everything else is read.
func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(b []byte){
		"payload": func(b []byte) { b[20] ^= 1 },
		"length":  func(b []byte) { b[0] ^= 0x40 },
		"header":  func(b []byte) { clear(b[:16]) },
		"zeros":   func(b []byte) { clear(b) },
		"many":    func(b []byte) { copy(b, bytes.Repeat([]byte("damage"), len(b))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := mustOpen(t, dir, nil)
			var pos []Position
			for i := range 30 {
				pos = append(pos, mustAppend(t, j, testRecord(uint64(i), 500)))
			}
			j.Close()
			path := filepath.Join(dir, segmentName(pos[0].seq()))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			from, to := pos[9].off(), pos[10].off()
			was := bytes.Clone(b[from:to])
			damage(b[from:to])
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			var told reports
			j = mustOpen(t, dir, &Options{Report: told.add})
			for _, name := range []string{"a", "b"} {
				got, _ := readAll(t, mustReader(t, j, name))
				if len(got) != 29 {
					t.Fatalf("read %d records", len(got))
				}
				for i, rec := range got {
					if i >= 10 {
						i++
					}
					if !bytes.Equal(rec, testRecord(uint64(i), 500)) {
						t.Errorf("record %d differs", i)
					}
				}
			}
			list := told.all()
			var ce *CorruptError
			if len(list) != 1 || !errors.As(list[0], &ce) || !errors.Is(list[0], ErrCorrupt) {
				t.Fatalf("reported: %v", list)
			}
			if ce.Path != path || ce.Offset != from || ce.Length != to-from {
				t.Errorf("reported %v, damaged %d..%d", ce, from, to)
			}
			q, err := os.ReadFile(ce.Saved)
			if err != nil || !bytes.Equal(q, b[from:to]) {
				t.Errorf("quarantine holds %d bytes, %v", len(q), err)
			}
			if bytes.Equal(q, was) {
				t.Error("nothing was damaged")
			}
			if s := j.Stats(); s.Damaged != 1 || s.DamagedBytes != uint64(to-from) {
				t.Errorf("%+v", s)
			}
			in, err := Inspect(dir)
			if err != nil || len(in.Segments) == 0 || len(in.Segments[0].Damage) != 1 || in.Segments[0].Records != 29 ||
				len(in.Quarantine) != 1 {
				t.Errorf("%+v, %v", in, err)
			}
		})
	}
}

// TestSetAsideWhole: a copy that the end of a process cut short is not taken for the whole of what
// cannot be read, and what was cut off a file is not made up.
func TestSetAsideWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
		j := mustOpen(t, "d", &Options{FS: c})
		mustReader(t, j, "r").Close()
		p := mustAppend(t, j, testRecord(1, 3*scanBlock))
		mustSync(t, j, p)
		mustSync(t, j, mustAppend(t, j, []byte("after")))
		seg := filepath.Join("d", segmentName(p.seq()))
		must(t, j.Close())
		f, err := c.Open(seg)
		must(t, err)
		_, err = f.WriteAt([]byte("damage"), dataStart+2*recordHeader)
		must(t, err)
		want := make([]byte, p.off()-dataStart)
		_, err = f.ReadAt(want, dataStart)
		must(t, err)
		damage := func() *CorruptError {
			t.Helper()
			var told reports
			j := mustOpen(t, "d", &Options{FS: c, Report: told.add})
			defer j.Close()
			readAll(t, mustReader(t, j, "r"))
			var ce *CorruptError
			if list := told.all(); len(list) != 1 || !errors.As(list[0], &ce) {
				t.Fatalf("told: %v", list)
			}
			return ce
		}
		// The process ends while it writes the copy.
		writes := 0
		c.mu.Lock()
		c.failing = func(op, path string) error {
			if op == "write" && strings.Contains(path, quarantineDir) {
				if writes++; writes == 2 {
					c.kill()
					return errPower
				}
			}
			return nil
		}
		c.mu.Unlock()
		j = mustOpen(t, "d", &Options{FS: c, Report: func(error) {}})
		_, _, _ = mustReader(t, j, "r").TryNext()
		_ = j.Close()
		c = c.after
		kept := func(ce *CorruptError) []byte {
			t.Helper()
			q, err := c.Open(ce.Saved)
			must(t, err)
			b := make([]byte, len(want)+1)
			n, _ := q.ReadAt(b, 0)
			return b[:n]
		}
		if ce := damage(); !bytes.Equal(kept(ce), want) {
			t.Errorf("%v: %d bytes of %d are kept", ce, len(kept(ce)), len(want))
		}
		// Others cut the file.
		must(t, c.Remove(damage().Saved))
		f, err = c.Open(seg)
		must(t, err)
		must(t, f.Truncate(dataStart+2*pageSize))
		ce := damage()
		if ce.Length < int64(len(want)) || !bytes.Equal(kept(ce), want[:2*pageSize]) {
			t.Errorf("%v: %d bytes of %d are kept", ce, len(kept(ce)), 2*pageSize)
		}
		must(t, c.Remove(ce.Saved))
		must(t, f.Truncate(dataStart))
		if ce := damage(); ce.Saved != "" {
			t.Errorf("%v: %d bytes are kept", ce, len(kept(ce)))
		}
	})
}

// TestForeignFiles: files that the journal cannot read are set aside, those that are not its own
// are left alone.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	o := &Options{SegmentBytes: minSegmentBytes}
	j := mustOpen(t, dir, o)
	var last Position
	for i := range 300 {
		last = mustAppend(t, j, testRecord(uint64(i), 1000))
	}
	mustSync(t, j, last)
	r := mustReader(t, j, "c")
	if _, err := r.Next(bg); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(r.Pos(), []byte("s")); err != nil {
		t.Fatal(err)
	}
	j.Close()
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copied, err := os.ReadFile(filepath.Join(dir, segmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	write(segmentName(0x7000), copied)             // says it is another
	write(segmentName(0x7001), []byte("not ours")) // no header
	write("seg-x.log", []byte("x"))
	write("cursor-c", []byte("broken"))
	write("README", []byte("a stranger's"))
	broken, err := os.OpenFile(filepath.Join(dir, segmentName(2)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = broken.WriteAt([]byte("XXXX"), 20)
	broken.Close()
	var told reports
	j = mustOpen(t, dir, &Options{SegmentBytes: minSegmentBytes, Report: told.add})
	if n := len(told.all()); n != 5 {
		t.Errorf("%d reports: %v", n, told.all())
	}
	for _, err := range told.all() {
		var ce *CorruptError
		if !errors.As(err, &ce) {
			t.Errorf("%v", err)
		} else if _, err := os.Stat(ce.Saved); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "README")); err != nil {
		t.Error(err)
	}
	// The cursor starts again at the oldest record, and all but the broken segment is read.
	got, _ := readAll(t, mustReader(t, j, "c"))
	if len(got) < 200 || !bytes.Equal(got[0], testRecord(0, 1000)) ||
		!bytes.Equal(got[len(got)-1], testRecord(299, 1000)) {
		t.Errorf("read %d records", len(got))
	}
	// Numbers that were seen are not used again.
	if p := mustAppend(t, j, []byte("x")); p.seq() <= 0x7001 {
		t.Errorf("position %v", p)
	}
}

func TestCursorNames(t *testing.T) {
	for _, name := range []string{
		"a", "file:///var/log/{tag}.jsonl", "ünï", "a b", "%41", strings.Repeat("x", 150),
		".", "..",
	} {
		file, err := cursorFile(name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if back, ok := cursorName(file); !ok || back != name || strings.ContainsAny(file, "/\\: ") {
			t.Errorf("%q is %q is %q, %v", name, file, back, ok)
		}
	}
	for _, name := range []string{"", strings.Repeat("ü", 200), "a.tmp"} {
		if _, err := cursorFile(name); err == nil {
			t.Errorf("%q is a cursor's name", name)
		}
	}
}

func TestCursors(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, &Options{SegmentBytes: minSegmentBytes, MaxBytes: 1 << 20})
	a, b := mustReader(t, j, "a"), mustReader(t, j, "b")
	if _, err := j.Reader("a"); err == nil {
		t.Error("a cursor was opened twice")
	}
	for i := range 400 {
		mustAppend(t, j, testRecord(uint64(i), 1000))
	}
	mustSync(t, j, j.Stats().Last)
	_, last := readAll(t, a)
	// The state may be large, and larger than before.
	for _, n := range []int{0, 10, 5000, 100_000, 3} {
		state := testRecord(uint64(n), n)[:n]
		if err := a.Commit(last, state); err != nil {
			t.Fatal(err)
		}
		if p, s := a.Committed(); p != last || !bytes.Equal(s, state) {
			t.Fatalf("%d bytes: %v with %d bytes", n, p, len(s))
		}
	}
	if err := a.Commit(last-1, nil); err == nil {
		t.Error("commit went back")
	}
	if err := b.Commit(last, nil); err == nil {
		t.Error("commit of what was not read")
	}
	segments := j.Stats().Segments
	if segments < 6 {
		t.Errorf("%d segments while a cursor needs them", segments)
	}
	if err := j.RemoveCursor("b"); err == nil {
		t.Error("an open cursor was removed")
	}
	b.Close()
	if _, err := b.Next(bg); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := j.RemoveCursor("b"); err != nil {
		t.Fatal(err)
	}
	if s := j.Stats().Segments; s > 1 {
		t.Errorf("%d segments that nobody needs", s)
	}
	if n := fmt.Sprint(j.Cursors()); n != "[a]" {
		t.Error(n)
	}
	j.Close()
	j = mustOpen(t, dir, nil)
	a = mustReader(t, j, "a")
	if p, s := a.Committed(); p != last || len(s) != 3 {
		t.Errorf("%v with %d bytes", p, len(s))
	}
}

// TestRemoveCursorAgain: a removal whose durability was not known is tried again, and what the
// cursor held is free then.
func TestRemoveCursorAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
		j := mustOpen(t, "d", &Options{FS: c})
		mustReader(t, j, "a").Close()
		synctest.Wait() // the next segment is prepared: what fails below fails for the cursor alone
		for _, op := range []string{"syncdir", "remove", ""} {
			c.mu.Lock()
			c.failing = func(o, _ string) error {
				if o == op {
					return syscall.EIO
				}
				return nil
			}
			c.mu.Unlock()
			if err := j.RemoveCursor("a"); (err == nil) != (op == "") {
				t.Errorf("failing %q: %v", op, err)
			}
		}
		if n := j.Cursors(); len(n) > 0 {
			t.Error(n)
		}
	})
}

// TestFaultAgain fails the sync after a failed one too, when there was more to write in between: in
// the page that both share nothing is lost.
func TestFaultAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashFS(rand.New(rand.NewPCG(1, 2)))
		var j *Journal
		var armed atomic.Bool
		failures := 0
		c.failing = func(op, path string) error {
			if !armed.Load() || op != "sync" || !strings.Contains(path, "seg-") || failures == 3 {
				return nil
			}
			if failures++; failures == 1 {
				// So much that its last page is padded: what follows does not write it once more.
				if _, err := j.Append(testRecord(1, padFrom)); err != nil {
					t.Error(err)
				}
			}
			return syscall.EIO
		}
		var told reports
		j = mustOpen(t, "d", &Options{FS: c, Report: told.add})
		defer j.Close()
		mustSync(t, j, mustAppend(t, j, []byte("before")))
		p := mustAppend(t, j, []byte("when it failed"))
		synctest.Wait()
		armed.Store(true)
		if err := j.Sync(bg, p); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		<-j.Space()
		mustSync(t, j, mustAppend(t, j, []byte("after")))
		c.mu.Lock()
		c.cut()
		c.mu.Unlock()
		j2 := mustOpen(t, "d", &Options{FS: c.after})
		defer j2.Close()
		got, _ := readAll(t, mustReader(t, j2, "r"))
		if len(got) != 4 || !bytes.Equal(got[2], testRecord(1, padFrom)) || failures != 3 {
			t.Errorf("%d failures, %d records", failures, len(got))
		}
	})
}
