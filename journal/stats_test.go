// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestUsed: Used and Behind count the records that a cursor has not passed, over segments, and
// nothing that is only prepared.
func TestUsed(t *testing.T) {
	j := mustOpen(t, t.TempDir(), &Options{SegmentBytes: minSegmentBytes, MaxBytes: 4 << 20})
	if s := j.Stats(); s.Used != 0 {
		t.Errorf("%d bytes used without a cursor and a record", s.Used)
	}
	r := mustReader(t, j, "r")
	var ends []Position
	const records, size = 50, 20 << 10 // several segments
	for i := range records {
		ends = append(ends, mustAppend(t, j, testRecord(uint64(i), size)))
	}
	mustSync(t, j, ends[records-1])
	if ends[0].seq() == ends[records-1].seq() {
		t.Fatal("all in one segment")
	}
	if s := j.Stats(); s.Used != j.Behind(0) || s.Used < records*size || s.Used >= s.Bytes {
		t.Errorf("used %d of files of %d bytes, behind %d; records have %d", s.Used, s.Bytes, j.Behind(0), records*size)
	}
	before := j.Behind(0)
	for i, end := range ends {
		rec, ok, err := r.TryNext()
		if err != nil || !ok || rec.Pos != end {
			t.Fatal(rec.Pos, ok, err)
		}
		if err := r.Commit(rec.Pos, nil); err != nil {
			t.Fatal(err)
		}
		now := j.Stats().Used
		if now != j.Behind(rec.Pos) || now > before-size || now < int64(records-1-i)*size {
			t.Fatalf("after record %d: used %d, behind %d, before it %d", i, now, j.Behind(rec.Pos), before)
		}
		before = now
	}
	if before != 0 {
		t.Errorf("%d bytes used when all was passed", before)
	}
}

// TestFound: a journal that is opened again knows when its segments had been written to, and no
// longer once it has used them anew.
func TestFound(t *testing.T) {
	dir := t.TempDir()
	o := &Options{SegmentBytes: minSegmentBytes, MaxBytes: 4 << 20}
	j := mustOpen(t, dir, o)
	mustReader(t, j, "r")
	var last Position
	for i := range 20 {
		last = mustAppend(t, j, testRecord(uint64(i), 20<<10))
	}
	mustSync(t, j, last)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "seg-*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	was := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, name := range files {
		if err := os.Chtimes(name, was, was.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	j = mustOpen(t, dir, o)
	found := j.Found()
	if len(found) < 2 || found[len(found)-1].End < last {
		t.Fatalf("found %v, the last record ends at %v", found, last)
	}
	for i, f := range found {
		if want := was.Add(time.Duration(i) * time.Second); !f.Time.Equal(want) {
			t.Errorf("segment %d is of %v, was last written to at %v", i, f.Time, want)
		}
	}
	r := mustReader(t, j, "r")
	if _, end := readAll(t, r); end != last {
		t.Fatal(end, last)
	}
	if err := r.Commit(last, nil); err != nil {
		t.Fatal(err)
	}
	mustSync(t, j, mustAppend(t, j, []byte("new")))
	if found := j.Found(); len(found) > 0 && found[0].End.seq() != last.seq() {
		t.Errorf("found %v after all of it was passed", found)
	}
}
