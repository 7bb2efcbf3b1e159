// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestConcurrent has appenders that flush, sync or neither, readers that commit, and someone who
// looks at statistics and files, all at once. Every reader sees every record once, each appender's
// in order; the journal stays within its limit and is used round and round.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	const appenders, each, limit = 6, 1500, 3 << 20
	j := mustOpen(t, dir, &Options{SegmentBytes: 128 << 10, MaxBytes: limit})
	// Before the first record: what is freed early is not theirs.
	readers := []*Reader{mustReader(t, j, "a"), mustReader(t, j, "b")}
	var wg sync.WaitGroup
	for w := range uint64(appenders) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(w, 0))
			for i := range uint64(each) {
				rec := testRecord(w<<32|i, 8+r.IntN(2000))
				p, err := j.Append(rec)
				for ; errors.Is(err, ErrFull); p, err = j.Append(rec) {
					<-j.Space()
				}
				if err == nil && r.IntN(3) == 0 {
					err = j.Flush(bg, p)
				}
				if err == nil && r.IntN(20) == 0 {
					err = j.Sync(bg, p)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, r := range readers {
		wg.Go(func() {
			next := map[uint64]uint64{}
			for n := 0; n < appenders*each; n++ {
				rec, err := r.Next(bg)
				if err != nil {
					t.Error(err)
					return
				}
				id := binary.LittleEndian.Uint64(rec.Data)
				if !bytes.Equal(rec.Data, testRecord(id, len(rec.Data))) || id&(1<<32-1) != next[id>>32] {
					t.Errorf("record %x, want %x of this appender", id, next[id>>32])
					return
				}
				next[id>>32]++
				if n%100 == 99 {
					if err := r.Commit(rec.Pos, rec.Data[:8]); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	var stop atomic.Bool
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for !stop.Load() {
			if b := j.Stats().Bytes; b > limit {
				t.Errorf("%d bytes on disk", b)
			}
			in, err := Inspect(dir)
			if err != nil {
				t.Error(err)
				return
			}
			_ = in.Records(func(rec Record) bool {
				id := binary.LittleEndian.Uint64(rec.Data)
				if !bytes.Equal(rec.Data, testRecord(id, len(rec.Data))) {
					t.Errorf("a look from outside saw a wrong record at %v", rec.Pos)
				}
				return true
			})
		}
	}()
	wg.Wait()
	stop.Store(true)
	<-looked
	if s := j.Stats(); s.Recycled < 20 {
		t.Errorf("%+v", s)
	}
}

// TestCloseWakes: what waits when the journal is closed gets ErrClosed, and several goroutines may
// call Close.
func TestCloseWakes(t *testing.T) {
	j := mustOpen(t, t.TempDir(), nil)
	var wg sync.WaitGroup
	ready := make(chan struct{}, 8)
	for range 4 {
		r := mustReader(t, j, strings.Repeat("r", len(j.Cursors())+1))
		wg.Go(func() {
			ready <- struct{}{}
			if _, err := r.Next(bg); !errors.Is(err, ErrClosed) {
				t.Errorf("next: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(bg)
	r := mustReader(t, j, "canceled")
	canceled := make(chan struct{})
	go func() {
		defer close(canceled)
		if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("next: %v", err)
		}
	}()
	for range 4 {
		<-ready
	}
	cancel()
	<-canceled
	for range 3 {
		wg.Go(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if _, err := j.Append(nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := j.Sync(bg, 1<<40); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := j.Flush(bg, 1<<40); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := j.Reader("x"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	<-j.Space()
}

// TestCloseWaits: who closes the journal waits for what others write to cursors, whichever of
// several callers it is: when Close returns the directory is another's to open.
func TestCloseWaits(t *testing.T) {
	for name, step := range map[string]func(*Journal, *Reader) error{
		"commit": func(_ *Journal, r *Reader) error { return r.Commit(0, make([]byte, 2*pageSize)) },
		"place":  func(j *Journal, _ *Reader) error { return j.PlaceCursor("new", 0, nil) },
		"make":   func(j *Journal, _ *Reader) error { _, err := j.Reader("new"); return err },
		"remove": func(j *Journal, _ *Reader) error { return j.RemoveCursor("old") },
	} {
		t.Run(name, func(t *testing.T) { closeWaits(t, step) })
	}
}

func closeWaits(t *testing.T, step func(*Journal, *Reader) error) {
	c := &heldNames{FS: newCrashFS(rand.New(rand.NewPCG(1, 2))), held: make(chan struct{}), free: make(chan struct{})}
	j := mustOpen(t, "d", &Options{FS: c})
	r := mustReader(t, j, "r")
	mustReader(t, j, "old").Close()
	c.armed.Store(true)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := step(j, r); err != nil {
			t.Error(err)
		}
	})
	<-c.held
	var closed atomic.Int32
	for range 2 {
		wg.Go(func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			closed.Add(1)
		})
	}
	<-j.done
	for n := 0; n < 200_000 && closed.Load() == 0; n++ {
		runtime.Gosched() // one that does not wait returns now
	}
	if n := closed.Load(); n > 0 {
		t.Errorf("%d callers of Close have returned while a cursor was being written", n)
	}
	if err := j.PlaceCursor("late", 0, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	close(c.free)
	wg.Wait()
	must(t, mustOpen(t, "d", &Options{FS: c.FS}).Close())
}

// heldNames holds the first change of a cursor's name once it is armed.
type heldNames struct {
	FS
	armed      atomic.Bool
	held, free chan struct{}
}

func (h *heldNames) hold(path string) {
	if cursor := strings.HasPrefix(filepath.Base(path), cursorPrefix) && !strings.HasSuffix(path, ".tmp"); cursor &&
		h.armed.CompareAndSwap(true, false) {
		close(h.held)
		<-h.free
	}
}

func (h *heldNames) Rename(oldpath, newpath string) error {
	h.hold(newpath)
	return h.FS.Rename(oldpath, newpath)
}

func (h *heldNames) Remove(path string) error {
	h.hold(path)
	return h.FS.Remove(path)
}

// TestUnreadablePage: a page that the device refuses is an error a few times, then damage; all
// before and behind it is read, and the segment is set aside instead of being used again.
func TestUnreadablePage(t *testing.T) { synctest.Test(t, testUnreadablePage) }

func testUnreadablePage(t *testing.T) {
	c := newCrashFS(rand.New(rand.NewPCG(1, 1)))
	bad := &badPageFS{FS: c}
	var told reports
	j := mustOpen(t, "d", &Options{FS: bad, SegmentBytes: minSegmentBytes, Report: told.add})
	var pos []Position
	for i := range 200 {
		pos = append(pos, mustAppend(t, j, testRecord(uint64(i), 1000)))
	}
	mustSync(t, j, pos[199])
	bad.page.Store(pos[20].off() / pageSize)
	r := mustReader(t, j, "r")
	n, failed := 0, 0
	var last Position
	for {
		rec, ok, err := r.TryNext()
		if err != nil {
			if !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			failed++
			<-time.After(200 * time.Millisecond) // of the bubble, as those do that follow
			continue
		}
		if !ok {
			break
		}
		last = rec.Pos
		n++
	}
	if last != pos[199] || n < 194 || n > 197 || failed < 200 || failed > 400 {
		t.Errorf("read %d records up to %v with %d errors", n, last, failed)
	}
	if err := r.Commit(last, nil); err != nil {
		t.Fatal(err)
	}
	j.Close()
	aside := 0
	for _, err := range told.all() {
		var ce *CorruptError
		if !errors.As(err, &ce) {
			t.Error(err)
		} else if ce.Length == 0 {
			aside++
		}
	}
	if len(told.all()) < 2 || aside != 1 {
		t.Errorf("reported: %v", told.all())
	}
}

// badPageFS refuses to read one page of the first segment.
type badPageFS struct {
	FS
	page atomic.Int64
}

type badPageFile struct {
	File
	b *badPageFS
}

func (b *badPageFS) Create(path string) (File, error) {
	f, err := b.FS.Create(path)
	if strings.HasSuffix(path, segmentName(1)) {
		return badPageFile{f, b}, err
	}
	return f, err
}

func (b *badPageFS) Open(path string) (File, error) {
	f, err := b.FS.Open(path)
	if strings.HasSuffix(path, segmentName(1)) {
		return badPageFile{f, b}, err
	}
	return f, err
}

func (f badPageFile) ReadAt(b []byte, off int64) (int, error) {
	p := f.b.page.Load() * pageSize
	if p > 0 && off < p+pageSize && off+int64(len(b)) > p {
		n := max(0, p-off)
		if n > 0 {
			if _, err := f.File.ReadAt(b[:n], off); err != nil {
				return 0, err
			}
		}
		return int(n), syscall.EIO
	}
	return f.File.ReadAt(b, off)
}
