// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

var bg = context.Background()

func mustOpen(t testing.TB, dir string, o *Options) *Journal {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	if o.Report == nil {
		o.Report = func(err error) { t.Errorf("reported: %v", err) }
	}
	j, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil && j.err == nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

func mustAppend(t testing.TB, j *Journal, rec []byte) Position {
	t.Helper()
	p, err := j.Append(rec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustSync(t testing.TB, j *Journal, p Position) {
	t.Helper()
	if err := j.Sync(bg, p); err != nil {
		t.Fatal(err)
	}
}

func mustReader(t testing.TB, j *Journal, name string) *Reader {
	t.Helper()
	r, err := j.Reader(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readAll returns what TryNext gives until there is no more.
func readAll(t testing.TB, r *Reader) (recs [][]byte, last Position) {
	t.Helper()
	for {
		rec, ok, err := r.TryNext()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return recs, last
		}
		if rec.Pos <= last {
			t.Fatalf("position %v after %v", rec.Pos, last)
		}
		last = rec.Pos
		recs = append(recs, bytes.Clone(rec.Data))
	}
}

// testRecord has its number in front and then bytes that follow from it, so that any mix of two is
// recognised.
func testRecord(n uint64, size int) []byte {
	b := make([]byte, max(size, 8))
	binary.LittleEndian.PutUint64(b, n)
	r := rand.NewPCG(n, uint64(size))
	for i := 8; i < len(b); i += 8 {
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], r.Uint64())
		copy(b[i:], w[:])
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	for _, size := range []int{0, 1, 7, 8, 100, 4064, 4065, 4080, 4096, 70_000, 300_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := t.TempDir()
			o := &Options{SegmentBytes: minSegmentBytes, MaxBytes: 256 << 20}
			j := mustOpen(t, dir, o)
			var want [][]byte
			for i := range 100 {
				rec := testRecord(uint64(i), size)[:size]
				want = append(want, rec)
				p, err := j.Append(rec[:size/2], rec[size/2:])
				if err != nil {
					t.Fatal(err)
				}
				if i%7 == 0 {
					mustSync(t, j, p)
				}
				if i%5 == 0 {
					if err := j.Flush(bg, p); err != nil {
						t.Fatal(err)
					}
				}
			}
			mustSync(t, j, j.Stats().Last)
			check := func(j *Journal, name string) Position {
				t.Helper()
				r := mustReader(t, j, name)
				got, last := readAll(t, r)
				if len(got) != len(want) {
					t.Fatalf("read %d records, appended %d", len(got), len(want))
				}
				for i := range got {
					if !bytes.Equal(got[i], want[i]) {
						t.Fatalf("record %d differs", i)
					}
				}
				return last
			}
			check(j, "a")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = mustOpen(t, dir, o)
			p := check(j, "b")
			check(j, "a")
			r := mustReader(t, j, "c")
			if err := r.SkipTo(p); err != nil {
				t.Fatal(err)
			}
			if err := r.Commit(p, []byte("state")); err != nil {
				t.Fatal(err)
			}
			j.Close()
			j = mustOpen(t, dir, o)
			r = mustReader(t, j, "c")
			if q, s := r.Committed(); q != p || string(s) != "state" {
				t.Fatalf("committed %v %q, want %v", q, s, p)
			}
			if got, _ := readAll(t, r); len(got) != 0 {
				t.Fatalf("%d records after the committed end", len(got))
			}
		})
	}
}

func TestRecycling(t *testing.T) {
	j := mustOpen(t, t.TempDir(), &Options{SegmentBytes: minSegmentBytes, MaxBytes: 1 << 20})
	r := mustReader(t, j, "r")
	for i := range 2000 {
		rec := testRecord(uint64(i), 3000)
		p := mustAppend(t, j, rec)
		if i%10 != 9 {
			continue
		}
		mustSync(t, j, p)
		got, last := readAll(t, r)
		if len(got) != 10 || !bytes.Equal(got[9], rec) {
			t.Fatalf("%d: read %d records", i, len(got))
		}
		if err := r.Commit(last, nil); err != nil {
			t.Fatal(err)
		}
	}
	if b := j.Stats().Bytes; b > 1<<20 {
		t.Errorf("%d bytes on disk", b)
	}
}

func TestFull(t *testing.T) {
	j := mustOpen(t, t.TempDir(), &Options{SegmentBytes: minSegmentBytes, MaxBytes: 512 << 10})
	r := mustReader(t, j, "r")
	n := 0
	for {
		_, err := j.Append(testRecord(uint64(n), 1000))
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 300 || j.Stats().Bytes > 512<<10 {
		t.Fatalf("full after %d records, %d bytes", n, j.Stats().Bytes)
	}
	space := j.Space()
	select {
	case <-space:
		t.Fatal("space in a full journal")
	default:
	}
	mustSync(t, j, j.Stats().Last)
	got, last := readAll(t, r)
	if len(got) != n {
		t.Fatalf("read %d of %d", len(got), n)
	}
	if err := r.Commit(last, nil); err != nil {
		t.Fatal(err)
	}
	<-space
	for {
		if _, err := j.Append(testRecord(uint64(n), 1000)); err == nil {
			break
		}
		<-j.Space()
	}
	if _, err := j.Append(make([]byte, 513<<10)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("larger than the journal: %v", err)
	}
}

func TestNextSeesWhatNobodySynced(t *testing.T) {
	j := mustOpen(t, t.TempDir(), nil)
	r := mustReader(t, j, "r")
	got := make(chan string)
	go func() {
		for {
			rec, err := r.Next(bg)
			if err != nil {
				got <- err.Error()
				return
			}
			got <- string(rec.Data)
		}
	}()
	for i := range 3 {
		mustAppend(t, j, fmt.Append(nil, i))
		if s := <-got; s != fmt.Sprint(i) {
			t.Fatal(s)
		}
	}
	j.Close()
	if s := <-got; s != ErrClosed.Error() {
		t.Fatal(s)
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	mustOpen(t, dir, nil)
	if _, err := Open(dir, nil); !errors.Is(err, ErrLocked) {
		t.Fatal(err)
	} else {
		t.Log(err)
	}
}

// TestReaderPassesPad: a segment is freed, and used anew, as soon as its last record is passed. A
// reader that stands there looks at nothing behind that.
func TestReaderPassesPad(t *testing.T) {
	j := mustOpen(t, t.TempDir(), &Options{SegmentBytes: minSegmentBytes})
	r := mustReader(t, j, "r")
	const group = 20
	for i := range 5 * group {
		for n := range group {
			size := 50
			if n == i%group {
				size = 7 * minSegmentBytes // in a segment of its own, with a pad behind it
			}
			if _, err := j.Append(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		}
		mustSync(t, j, j.Stats().Last)
		for n := range group {
			if _, ok, err := r.TryNext(); !ok || err != nil {
				t.Fatalf("record %d of group %d: %v %v", n, i, ok, err)
			}
		}
		if err := r.Commit(r.Pos(), nil); err != nil {
			t.Fatal(err)
		}
	}
}
