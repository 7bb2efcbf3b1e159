// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

var writeGolden = flag.Bool("golden", false, "write testdata anew; only for a format that was never released")

func record(l *Letter, store key) []byte {
	k := keyOf(l, new(forward.Inflater))
	head, body, tail := encode(l, k, idOf(store, k))
	return bytes.Join([][]byte{head, body, tail}, nil)
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

// TestEncode: what is put is read, with the id of the letter in place of the sender's, by whatever
// reads chunks, too.
func TestEncode(t *testing.T) {
	whole := letter("web", 77, 3)
	part := letter("web", 77, 2)
	part.Entries = []int{0, 2}
	none := letter("", 0, 0)
	none.Entries, none.Reason = []int{}, ""
	packed := letter("web", 77, 3)
	packed.Chunk.Compressed, packed.Chunk.Compression, packed.Chunk.Signal = gzipped(packed.Chunk.Entries), "gzip", 2
	cut := packed
	cut.Entries = []int{4, 5, 6}
	for _, tc := range []struct {
		name   string
		letter Letter
		gzip   bool
	}{
		{"whole", whole, false},
		{"part", part, false},
		{"none", none, false},
		{"packed", packed, true},
		{"cut of what was packed", cut, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := record(&tc.letter, key{1})
			got, k, err := decode(b)
			if err != nil {
				t.Fatal(err)
			}
			c, err := forward.ParseChunk(b)
			if err != nil {
				t.Fatal(err)
			}
			want := tc.letter.Chunk
			if !reflect.DeepEqual(c, got.Chunk) || c.Tag != want.Tag || len(c.ID) != len(forward.NewID()) ||
				!c.UniqueID || c.Signal != want.Signal ||
				c.Events != got.Events() || tc.gzip != (c.Compression == "gzip") {
				t.Errorf("as a chunk it is %+v", c)
			}
			if err := new(forward.Inflater).Inflate(c); err != nil || !bytes.Equal(c.Entries, want.Entries) {
				t.Errorf("entries %x, %v", c.Entries, err)
			}
			if k != keyOf(&tc.letter, new(forward.Inflater)) {
				t.Errorf("key %x", k)
			}
			got.Chunk = want
			if !reflect.DeepEqual(got, tc.letter) {
				t.Errorf("%+v, want %+v", got, tc.letter)
			}
		})
	}
}

// TestKey: a letter is the same however its entries are packed and whatever was said of it, and
// another one when anything else differs.
func TestKey(t *testing.T) {
	keyFor := func(change func(*Letter)) key {
		l := letter("web", 77, 3)
		l.Entries = []int{1, 2, 3}
		change(&l)
		return keyOf(&l, new(forward.Inflater))
	}
	same := keyFor(func(*Letter) {})
	for _, change := range []func(*Letter){
		func(l *Letter) { l.Reason, l.Time = "", l.Time.Add(1) },
		func(l *Letter) { l.Chunk.ID = nil },
		func(l *Letter) {
			l.Chunk.Compressed, l.Chunk.Compression, l.Chunk.Entries = gzipped(l.Chunk.Entries), "gzip", nil
		},
	} {
		if keyFor(change) != same {
			t.Error("the same letter has another key")
		}
	}
	seen := map[key]int{same: -1}
	for i, change := range []func(*Letter){
		func(l *Letter) { l.Output = "we" },
		func(l *Letter) { l.Position++ },
		func(l *Letter) { l.Entries = nil },
		func(l *Letter) { l.Entries = []int{} },
		func(l *Letter) { l.Entries = []int{1, 2, 4} },
		func(l *Letter) { l.Chunk.Tag = "app" },
		func(l *Letter) { l.Chunk.Entries = entries(1, 2, 3) },
		func(l *Letter) { l.Output, l.Chunk.Tag = "webapp.", "web" },
		func(l *Letter) {
			l.Chunk.Compressed, l.Chunk.Compression, l.Chunk.Entries = []byte("no gzip"), "gzip", nil
		},
	} {
		k := keyFor(change)
		if before, ok := seen[k]; ok && i != 3 { // all of them and none cannot both be refused
			t.Errorf("change %d has the key of %d", i, before)
		}
		seen[k] = i
	}
	if a, b := idOf(key{1}, same), idOf(key{2}, same); bytes.Equal(a, b) || !bytes.Equal(a, idOf(key{1}, same)) {
		t.Errorf("ids %s and %s", a, b)
	}
}

// goldenLetters are what testdata/v1 holds.
func goldenLetters() []Letter {
	part := letter("web", 0x100002000, 2)
	part.Entries = []int{3, 70_000}
	packed := letter("file:///var/log/x", 0x100003000, 3)
	packed.Chunk.Compressed = unhexed(goldenGzip)
	packed.Chunk.Compression, packed.Chunk.Entries = "gzip", nil
	return []Letter{letter("web", 0x100001000, 1), part, packed}
}

// TestGolden reads a directory as this version wrote it: three letters, the first one gone, a mark,
// an identity. It stays for ever.
func TestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "v1")
	if *writeGolden {
		if err := os.RemoveAll(golden); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, golden, nil)
		mustPut(t, s, goldenLetters()...)
		mustClose(t, s)
		taker := mustTake(t, golden, "web")
		e := mustNext(t, taker)
		if err := errors.Join(taker.Done(e), taker.Commit(), taker.Close()); err != nil {
			t.Fatal(err)
		}
		trimSegments(t, golden)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	l, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := goldenLetters()
	i := 0
	err = l.each(func(e *Entry) bool {
		want := all[i]
		if e.Err != nil || e.gone != (i == 0) || e.Output != want.Output || e.Reason != want.Reason ||
			!e.Time.Equal(want.Time) || e.Position != want.Position ||
			!reflect.DeepEqual(e.Entries, want.Entries) || e.Chunk.Tag != want.Chunk.Tag ||
			!bytes.Equal(e.Chunk.Body(), want.Chunk.Body()) {
			t.Errorf("letter %d: %+v", i, e)
		}
		if got := record(&want, l.state.store); !bytes.Equal(got, recordOf(t, dir, i)) {
			t.Errorf("letter %d is written as %x today, was %x", i, got, recordOf(t, dir, i))
		}
		i++
		return true
	})
	if err != nil || i != len(all) || len(l.state.recent) != 1 {
		t.Errorf("%d letters, state %+v, %v", i, l.state, err)
	}
	s := mustOpen(t, dir, nil)
	mustPut(t, s, all...) // all of which it knows, the one that is gone too
	if st := s.Stats(); st.Letters != 2 || st.Events != 5 {
		t.Errorf("%+v", st)
	}
}

func recordOf(t *testing.T, dir string, n int) (b []byte) {
	t.Helper()
	i, err := journal.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Records(func(r journal.Record) bool {
		b = bytes.Clone(r.Data)
		n--
		return n >= 0
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

// trimSegments removes files that hold nothing, and cuts the zeros off the others.
func trimSegments(t *testing.T, dir string) {
	if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	i, err := journal.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range i.Segments {
		path := filepath.Join(dir, s.Name)
		err := os.Truncate(path, min(s.Size, (s.Valid+4095)&^4095))
		if s.Spare {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDecode: whatever a record is, reading it ends, and what was read as a letter is written and
// read the same.
func FuzzDecode(f *testing.F) {
	for _, l := range goldenLetters() {
		f.Add(record(&l, key{1}))
	}
	odd := append(msgpack.AppendArrayHeader(nil, 3), 0xa0, 0xc4, 0)
	f.Add(append(odd, 0x81, 0xa6, 'l', 'e', 't', 't', 'e', 'r', 0x81, 0xa7, 'e', 'n', 't', 'r', 'i', 'e', 's', 0x92,
		0xcf, 0x80, 0, 0, 0, 0, 0, 0, 0, 1))
	f.Add(append(odd, 0x80))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, k, err := decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) || l.Chunk == nil {
				t.Errorf("%+v, %v", l, err)
			}
			return
		}
		if err := l.check(new(forward.Inflater)); err != nil && !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
		if l.Time.IsZero() { // as no letter's is that was put
			l.Time = time.Unix(0, 0).UTC()
		}
		head, body, tail := encode(&l, k, l.Chunk.ID)
		again, k2, err := decode(bytes.Join([][]byte{head, body, tail}, nil))
		if l.Chunk.ID == nil {
			again.Chunk.ID = nil
		}
		l.Chunk.UniqueID, l.Chunk.IDBin = true, false
		if l.Entries != nil {
			l.Chunk.Events = len(l.Entries)
		}
		if l.Chunk.Compressed != nil && len(l.Chunk.Compressed) == 0 || l.Chunk.Signal < 0 {
			return
		}
		if err != nil || k != k2 || !reflect.DeepEqual(l, again) {
			t.Errorf("%+v %+v, then %+v %+v, %v", l, l.Chunk, again, again.Chunk, err)
		}
	})
}
