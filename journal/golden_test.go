// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var writeGolden = flag.Bool("golden", false, "write testdata anew; only for a format that was never released")

// goldenRecords are what the golden segments hold.
func goldenRecords() [][]byte {
	recs := [][]byte{{}, []byte("a"), []byte("12345678")}
	for i := range 14 {
		recs = append(recs, testRecord(uint64(i), 1<<i))
	}
	return append(recs, []byte("the last"))
}

// TestGolden reads a directory as format version 1 wrote it: two segments, the first with a record
// larger than a page, padding and tails, and a cursor. These files stay for ever.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "v1")
	if *writeGolden {
		writeGoldenDir(t, golden)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	want := goldenRecords()
	in, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range in.Segments {
		n += int(s.Records)
		if s.Err != nil || len(s.Damage) > 0 {
			t.Errorf("%+v", s)
		}
	}
	if n != len(want) || len(in.Cursors) != 1 || in.Cursors[0].Name != "file:x" ||
		in.Cursors[0].Records != int64(len(want)-3) {
		t.Errorf("%d records; cursors %+v", n, in.Cursors)
	}
	j := mustOpen(t, dir, nil)
	got, last := readAll(t, mustReader(t, j, "new"))
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("record %d differs", i)
		}
	}
	if last != at(3, 0x3018) {
		t.Errorf("last position %v", last)
	}
	r := mustReader(t, j, "file:x")
	if p, state := r.Committed(); p != at(1, 0x3040) || string(state) != "golden state" {
		t.Errorf("cursor at %v with %q", p, state)
	}
	if rec, err := r.Next(bg); err != nil || !bytes.Equal(rec.Data, want[3]) {
		t.Errorf("behind the cursor: %x, %v", rec.Data, err)
	}
}

// TestFormat writes today what version 1 wrote, with the golden nonces, and compares the bytes of
// the records.
func TestFormat(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "v1", segmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	var h segmentHeader
	if err := h.parse(want); err != nil {
		t.Fatal(err)
	}
	recs := goldenRecords()
	got := segmentBytes(1, h.nonce, recs[:3]...)
	if end := int64(dataStart + 64); !bytes.Equal(got[dataStart:end], want[dataStart:end]) {
		t.Errorf("records are written as\n%x, were\n%x", got[dataStart:end], want[dataStart:end])
	}
	page := make([]byte, pageSize)
	h.put(page)
	if !bytes.Equal(page, want[:pageSize]) {
		t.Errorf("header is written as\n%x, was\n%x", page[:headerLen], want[:headerLen])
	}
}

func writeGoldenDir(t *testing.T, dir string) {
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o := &Options{SegmentBytes: minSegmentBytes}
	recs := goldenRecords()
	for _, part := range [][][]byte{recs[:len(recs)-1], recs[len(recs)-1:]} {
		j := mustOpen(t, dir, o)
		for i, rec := range part {
			p := mustAppend(t, j, rec)
			if i%2 == 0 {
				mustSync(t, j, p)
			}
		}
		if len(j.Cursors()) == 0 {
			r := mustReader(t, j, "file:x")
			for range 3 {
				if _, err := r.Next(bg); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Commit(r.Pos(), []byte("golden state")); err != nil {
				t.Fatal(err)
			}
		}
		j.Close()
	}
	// What a directory holds besides would only make the repository larger.
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var h segmentHeader
		if h.parse(append(b, make([]byte, pageSize)...)) == nil && h.kind == segmentSpare || e.Name() == "lock" {
			os.Remove(path)
			continue
		}
		if _, ok := segmentSeq(e.Name()); ok {
			b = append(bytes.TrimRight(b, "\x00"), make([]byte, pageSize)...)
			b = b[:pageDown(int64(len(b)))]
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Printf("%s %d bytes, %x\n", path, len(b), sha256.Sum256(b))
	}
}
