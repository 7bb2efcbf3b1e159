// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/journal"
)

func namesOf(all []*Entry) []string {
	var names []string
	for _, e := range all {
		names = append(names, name(e))
	}
	return names
}

// take takes letters of one output out of dir, at most so many, and commits.
func take(t *testing.T, dir, output string, most int) []string {
	t.Helper()
	taker := mustTake(t, dir, output)
	var names []string
	for range most {
		e := mustNext(t, taker)
		if e == nil {
			break
		}
		names = append(names, name(e))
		if e.Err == nil {
			if err := taker.Done(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(taker.Commit(), taker.Close()); err != nil {
		t.Fatal(err)
	}
	return names
}

func putAll(t *testing.T, dir string, outputs ...string) {
	t.Helper()
	s := mustOpen(t, dir, nil)
	for i, o := range outputs {
		mustPut(t, s, letter(o, uint64(i+1), 1))
	}
	mustClose(t, s)
}

// TestTake: each letter comes once, in order, whichever outputs are asked for.
func TestTake(t *testing.T) {
	dir := t.TempDir()
	putAll(t, dir, "a", "b", "a", "b", "c", "a")
	for _, step := range []struct {
		output string
		most   int
		want   []string
		left   []string
	}{
		{"b", 1, []string{"b@2"}, []string{"a@1", "a@3", "b@4", "c@5", "a@6"}},
		{"b", 9, []string{"b@4"}, []string{"a@1", "a@3", "c@5", "a@6"}},
		{"b", 9, nil, []string{"a@1", "a@3", "c@5", "a@6"}},
		{"", 2, []string{"a@1", "a@3"}, []string{"c@5", "a@6"}},
		{"a", 9, []string{"a@6"}, []string{"c@5"}},
		{"none", 9, nil, []string{"c@5"}},
		{"", 9, []string{"c@5"}, nil},
		{"", 9, nil, nil},
	} {
		if got := take(t, dir, step.output, step.most); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.output, got, step.want)
		}
		if got := list(t, dir); !slices.Equal(got, step.left) {
			t.Errorf("after %s: %v, want %v", step.output, got, step.left)
		}
	}
	if _, err := Take(t.TempDir(), "", nil); err == nil {
		t.Error("letters are taken where there are none")
	}
}

// TestTakeOutOfOrder: what is done goes when all before it has; what is not committed comes again,
// with the same ids.
func TestTakeOutOfOrder(t *testing.T) {
	dir := t.TempDir()
	putAll(t, dir, "a", "a", "b", "a")
	taker := mustTake(t, dir, "")
	all := rest(t, taker)
	if got := namesOf(all); !slices.Equal(got, []string{"a@1", "a@2", "b@3", "a@4"}) {
		t.Fatal(got)
	}
	for _, i := range []int{3, 0, 2} {
		if err := taker.Done(all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, dir); len(got) != 4 {
		t.Errorf("nothing is committed, and there are %v", got)
	}
	if err := errors.Join(taker.Commit(), taker.Commit(), taker.Close()); err != nil {
		t.Fatal(err)
	}
	taker = mustTake(t, dir, "")
	again := rest(t, taker)
	if got := namesOf(again); !slices.Equal(got, []string{"a@2", "b@3", "a@4"}) {
		t.Fatal(got)
	}
	for i, e := range again {
		if string(e.Chunk.ID) != string(all[i+1].Chunk.ID) || len(e.Chunk.ID) != 24 {
			t.Errorf("%s had the id %s, has %s", name(e), all[i+1].Chunk.ID, e.Chunk.ID)
		}
	}
}

// appendRaw puts records that are no letters into a directory of letters.
func appendRaw(t *testing.T, dir string, records ...[]byte) {
	t.Helper()
	j, err := journal.Open(dir, &journal.Options{SegmentBytes: segmentBytes})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if _, err := j.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, j)
}

// TestTakeUnreadable: what cannot be read is told and stays, also when what comes after it goes,
// and comes again.
func TestTakeUnreadable(t *testing.T) {
	dir := t.TempDir()
	putAll(t, dir, "a", "b")
	broken := letter("a", 7, 1)
	broken.Chunk.Entries = []byte{0xc1}
	packed := letter("b", 8, 1)
	packed.Chunk.Compressed, packed.Chunk.Compression, packed.Chunk.Entries = []byte("no gzip"), "gzip", nil
	appendRaw(t, dir, []byte("no chunk"), letter("", 1, 1).Chunk.AppendHead(nil))
	s := mustOpen(t, dir, nil)
	mustPut(t, s, broken, packed, letter("a", 9, 1))
	if st := s.Stats(); st.Letters != 7 || st.Events != 5 {
		t.Errorf("%+v", st)
	}
	mustClose(t, s)
	want := []string{"a@1", "b@2", "unreadable", "unreadable", "unreadable", "unreadable", "a@9"}
	for range 2 {
		if got := take(t, dir, "", 99); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		want = []string{"unreadable", "unreadable", "unreadable", "unreadable"}
	}
	// A listing does not look at entries.
	if got := list(t, dir); !slices.Equal(got, []string{"unreadable", "unreadable", "a@7", "b@8"}) {
		t.Error(got)
	}
}

// TestTakeProperty: whatever is put and taken in whatever pieces and with whatever ends between,
// each letter is committed once, and those of an output in order.
func TestTakeProperty(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	outputs := []string{"a", "b", "c"}
	there := map[string]bool{} // what is to be there
	put := uint64(0)
	for range needs.Rounds(t, "SPILLWAY_LETTERS", 20, 150) {
		s := mustOpen(t, dir, nil)
		for range r.IntN(8) {
			put++
			o := outputs[r.IntN(3)]
			mustPut(t, s, letter(o, put, 1))
			there[fmt.Sprintf("%s@%d", o, put)] = true
		}
		mustClose(t, s)
		if put == 0 {
			continue
		}
		filter := append(outputs, "")[r.IntN(4)]
		taker := mustTake(t, dir, filter)
		var open []*Entry
		last := map[string]uint64{}
		var order []string // returned
		done := map[string]bool{}
		committed := map[string]bool{}
		for range r.IntN(20) {
			switch r.IntN(3) {
			case 0, 1:
				e := mustNext(t, taker)
				if e == nil {
					continue
				}
				if !there[name(e)] || filter != "" && e.Output != filter || e.Position <= last[e.Output] {
					t.Fatalf("%s came, after %d", name(e), last[e.Output])
				}
				last[e.Output] = e.Position
				open = append(open, e)
				order = append(order, name(e))
			case 2:
				if len(open) == 0 {
					continue
				}
				i := r.IntN(len(open))
				if err := taker.Done(open[i]); err != nil {
					t.Fatal(err)
				}
				done[name(open[i])] = true
				open = slices.Delete(open, i, i+1)
				if r.IntN(2) == 0 {
					if err := taker.Commit(); err != nil {
						t.Fatal(err)
					}
					for _, n := range order { // those that are done up to the first that is not
						if !done[n] {
							break
						}
						committed[n] = true
					}
				}
			}
		}
		mustClose(t, taker)
		for n := range committed {
			delete(there, n)
		}
		got := list(t, dir)
		for _, n := range got {
			if !there[n] {
				t.Fatalf("%s is there", n)
			}
		}
		if len(got) != len(there) {
			t.Fatalf("%d letters are there, want %d", len(got), len(there))
		}
	}
}

// TestCopy: copies are what Take would take, also while a store is open, and nothing goes.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	putAll(t, dir, "a", "b", "a")
	take(t, dir, "b", 1)
	s := mustOpen(t, dir, nil)
	mustPut(t, s, letter("b", 9, 1))
	for _, tc := range []struct {
		output string
		want   []string
	}{{"", []string{"a@1", "a@3", "b@9"}}, {"a", []string{"a@1", "a@3"}}, {"b", []string{"b@9"}}, {"c", nil}} {
		taker, err := Copy(dir, tc.output)
		if err != nil {
			t.Fatal(err)
		}
		all := rest(t, taker)
		for _, e := range all {
			if err := taker.Done(e); err != nil {
				t.Fatal(err)
			}
		}
		if got := namesOf(all); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.output, got, tc.want)
		}
		if err := errors.Join(taker.Commit(), taker.Close(), taker.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, dir); !slices.Equal(got, []string{"a@1", "a@3", "b@9"}) {
		t.Error(got)
	}
	if _, err := Copy(t.TempDir(), ""); err == nil {
		t.Error("copies of nothing")
	}
}
