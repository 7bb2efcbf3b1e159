// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

func testRepeats(t *testing.T) *repeats {
	t.Helper()
	r, err := newRepeats(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// came is a chunk, and where it comes from.
type came struct {
	*forward.Chunk
	from origin
}

func chunk(id, tag, peer, entries string, conn uint64) came {
	return came{&forward.Chunk{ID: []byte(id), Tag: tag, Entries: []byte(entries), Events: 1}, origin{peer, conn}}
}

// sent is a chunk whose tag the input made of another one.
func sent(tag string, c came) came {
	changed := c.Clone()
	changed.Sent = &forward.Sent{Tag: tag}
	return came{changed, c.from}
}

func fly(r *repeats, c came) *inFlightGroup {
	return &inFlightGroup{candidates: []candidate{{
		fingerprint: r.fingerprint(c.Chunk, c.from.peer),
		conn:        c.from.conn,
	}}}
}

// arrive takes one chunk through the window as store does.
func arrive(r *repeats, c came, pos journal.Position) verdict {
	f := fly(r, c)
	r.begin(f, 0)
	if f.candidates[0].verdict == fresh {
		f.candidates[0].pos = pos
	}
	r.finish(f)
	return f.candidates[0].verdict
}

func TestRepeatRule(t *testing.T) {
	first := chunk("id", "tag", "10.0.0.1", "entries", 1)
	own := came{first.Clone(), first.from}
	own.UniqueID = true
	for _, tc := range []struct {
		name   string
		first  came
		second came
		want   verdict
	}{
		{"on a new connection", first, chunk("id", "tag", "10.0.0.1", "entries", 2), repeat},
		{"on the same connection", first, chunk("id", "tag", "10.0.0.1", "entries", 1), fresh},
		{"from another address", first, chunk("id", "tag", "10.0.0.2", "entries", 2), fresh},
		{"under another tag", first, chunk("id", "gat", "10.0.0.1", "entries", 2), fresh},
		{"with another id", first, chunk("di", "tag", "10.0.0.1", "entries", 2), fresh},
		{"with other entries", first, chunk("id", "tag", "10.0.0.1", "sertien", 2), fresh},
		{"with a boundary moved", first, chunk("idt", "ag", "10.0.0.1", "entries", 2), fresh},
		{"own id from another address", own, came{own.Clone(), origin{"10.0.0.2", 2}}, repeat},
		{
			"under another tag that the input made one", sent("gat", first),
			sent("tag", chunk("id", "tag", "10.0.0.1", "entries", 2)), fresh,
		},
		{
			"under the same tag, of which the input makes another", first,
			sent("tag", chunk("id", "site.tag", "10.0.0.1", "entries", 2)), fresh,
		},
		{
			"under the same two tags", sent("gat", first), sent("gat", chunk("id", "tag", "10.0.0.1", "entries", 2)),
			repeat,
		},
		{"own id and then a foreign one", own, chunk("id", "tag", "10.0.0.1", "entries", 2), fresh},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := testRepeats(t)
			if v := arrive(r, tc.first, 8); v != fresh {
				t.Fatalf("the first one is %v", v)
			}
			if v := arrive(r, tc.second, 16); v != tc.want {
				t.Errorf("got %v, want %v", v, tc.want)
			}
		})
	}
}

// TestRepeatsOfEqualChunks: a sender whose ids are hashes stores the same thing
// twice on one connection, then loses it and resends both on another one.
// Neither is stored again; a third one there is new.
func TestRepeatsOfEqualChunks(t *testing.T) {
	r := testRepeats(t)
	for i, step := range []struct {
		conn uint64
		want verdict
	}{{1, fresh}, {1, fresh}, {2, repeat}, {2, repeat}, {2, fresh}, {3, repeat}} {
		if v := arrive(r, chunk("hash", "t", "p", "e", step.conn), journal.Position(i+1)); v != step.want {
			t.Fatalf("step %d on connection %d: got %v, want %v", i, step.conn, v, step.want)
		}
	}
}

// TestRepeatHashesWhatCame: a time of 0 is resolved when a chunk arrives, so
// the hash must not see it.
func TestRepeatHashesWhatCame(t *testing.T) {
	r := testRepeats(t)
	a, b := chunk("id", "t", "p", "resolved at noon", 1), chunk("id", "t", "p", "resolved at one", 2)
	a.Sent, b.Sent = &forward.Sent{Entries: []byte("time 0")}, &forward.Sent{Entries: []byte("time 0")}
	arrive(r, a, 8)
	if v := arrive(r, b, 16); v != repeat {
		t.Errorf("got %v, want a repeat", v)
	}
}

func TestRepeatWhileStoring(t *testing.T) {
	r := testRepeats(t)
	first, second := fly(r, chunk("id", "t", "p", "e", 1)), fly(r, chunk("id", "t", "p", "e", 2))
	again := &second.candidates[0]
	r.begin(first, 0)
	r.begin(second, 0)
	if first.candidates[0].verdict != fresh || again.verdict != busy {
		t.Fatalf("got %v and %v, want fresh and busy", first.candidates[0].verdict, again.verdict)
	}
	r.finish(second)
	r.finish(first) // without a position: it was not stored
	select {
	case <-again.done:
	default:
		t.Fatal("finish does not wake who waits")
	}
	if r.begin(second, 0); again.verdict != fresh {
		t.Errorf("after the first one failed, got %v, want fresh", again.verdict)
	}
	if len(r.inFlight) != 1 || len(r.waiters) != 0 {
		t.Errorf("%d groups and %d waiters, want 1 and 0", len(r.inFlight), len(r.waiters))
	}
}

func TestRepeatsExpire(t *testing.T) {
	r := testRepeats(t)
	now := time.Unix(1_700_000_000, 0)
	r.now = func() time.Time { return now }
	arrive(r, chunk("id", "t", "p", "e", 1), 8)
	now = now.Add(repeatAge + 2*time.Second)
	if v := arrive(r, chunk("id", "t", "p", "e", 2), 16); v != fresh {
		t.Errorf("after %v got %v, want fresh", repeatAge, v)
	}
}

func TestRepeatsAreBounded(t *testing.T) {
	r := testRepeats(t)
	var p fingerprint
	for i := range repeatCount + 1000 {
		p[4], p[5], p[6], p[7] = byte(i), byte(i>>8), byte(i>>16), 1
		r.learn(p, journal.Position(i+1), 1)
	}
	if r.slots.n != repeatCount || r.index.used != repeatCount {
		t.Errorf("%d slots and %d in the index, want %d", r.slots.n, r.index.used, repeatCount)
	}
	if r.index.find(p, &r.slots) < 0 {
		t.Error("the newest one is not there")
	}
	p[4], p[5], p[6] = 0, 0, 0
	if r.index.find(p, &r.slots) >= 0 {
		t.Error("the oldest one is still there")
	}
}

// TestRepeatsMemory drives single events through the window as a store does at
// 200,000 acks a second: one clock second each 200,000, the file saved four
// times in that. Memory stays within its bound, also while the disk cannot
// take what is to be saved, and Stats tells how far back the window reaches.
func TestRepeatsMemory(t *testing.T) {
	const rate, together, seconds = 200_000, 100, 8
	dir := t.TempDir()
	f, j := openTestRepeats(t, dir)
	defer j.Close()
	defer f.close()
	now := time.Unix(1_700_000_000, 0)
	f.now = func() time.Time { return now }
	before, most := heap(), int64(0)
	fl := &inFlightGroup{candidates: make([]candidate, together)}
	f.saved = math.MaxUint64 // the cursor stays: the journal has none of this
	n := uint64(0)
	for second := range seconds {
		for batch := range rate / together {
			for i := range fl.candidates {
				n++
				c := candidate{conn: 1}
				binary.LittleEndian.PutUint64(c.fingerprint[:], n*0x9e3779b97f4a7c15)
				fl.candidates[i] = c
			}
			f.begin(fl, 0)
			for i := range fl.candidates {
				fl.candidates[i].pos = journal.Position(n)
			}
			f.finish(fl)
			if batch%(rate/together/4) == 0 && second/2 != 2 { // for two seconds the disk hangs
				if err := f.save(journal.Position(n - 1000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		now = now.Add(time.Second)
		most = max(most, heap()-before)
	}
	s := f.stats()
	t.Logf("%d of %d fingerprints, %d bytes by its own count, %d by the runtime's, back to %v",
		s.Chunks, s.MaxChunks, s.Bytes, most, s.Age)
	if s.Bytes > repeatBytes || most > repeatBytes {
		t.Errorf("more than %d bytes", repeatBytes)
	}
	if want := repeatCount / rate * time.Second; s.Age < want || s.Age > want+2*time.Second {
		t.Errorf("the window reaches back %v, want %v and the started second", s.Age, want)
	}
	now = now.Add(-time.Hour) // somebody sets the clock back
	if age := f.stats().Age; age != 0 {
		t.Errorf("the window reaches back %v", age)
	}
	if size := f.size; size > 2*repeatCount*seenRecordSize+seenHeaderSize {
		t.Errorf("the file has %d bytes", size)
	}
	// What overran while the disk hung is in the file by now.
	if err := f.save(journal.Position(n)); err != nil {
		t.Fatal(err)
	}
	again, err := newRepeats(f.key)
	if err != nil {
		t.Fatal(err)
	}
	loaded := &repeatsFile{repeats: again}
	loaded.now = f.now
	b, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := loaded.load(bytes.NewReader(b[seenHeaderSize:]), journal.Position(n)); err != nil {
		t.Fatal(err)
	}
	for i := n - repeatCount + 1; i <= n; i++ {
		var p fingerprint
		binary.LittleEndian.PutUint64(p[:], i*0x9e3779b97f4a7c15)
		if loaded.index.find(p, &loaded.slots) < 0 {
			t.Fatalf("fingerprint %d of %d is not in the file", i, n)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFingerprintIndex compares the index with a map, under inserts and removals that
// collide all the time.
func TestFingerprintIndex(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var x fingerprintIndex
	var known slots
	for range 400 {
		known.grow()
	}
	where := map[fingerprint]int{}
	for range 200_000 {
		slot := rnd.IntN(known.n)
		old := known.at(slot).fingerprint
		if i, ok := where[old]; ok && i == slot {
			x.remove(old, slot)
			delete(where, old)
			known.at(slot).fingerprint = fingerprint{}
			continue
		}
		var p fingerprint
		p[0], p[4], p[5] = byte(rnd.IntN(4)), byte(rnd.IntN(256)), byte(rnd.IntN(2))
		p[8] = 1
		if _, ok := where[p]; ok {
			continue
		}
		known.at(slot).fingerprint = p
		where[p] = slot
		x.insert(p, slot)
	}
	for p, slot := range where {
		if got := x.find(p, &known); got != slot {
			t.Fatalf("%x: got slot %d, want %d", p, got, slot)
		}
	}
	if x.used != len(where) {
		t.Errorf("%d in use, want %d", x.used, len(where))
	}
}

func openTestRepeats(t *testing.T, dir string) (*repeatsFile, *journal.Journal) {
	t.Helper()
	j, err := journal.Open(filepath.Join(dir, "journal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := openRepeats(dir, j, func(err error) { t.Logf("told: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	return f, j
}

// put stores a chunk as store does.
func put(t *testing.T, f *repeatsFile, j *journal.Journal, c came) verdict {
	t.Helper()
	fl := fly(f.repeats, c)
	f.begin(fl, j.Synced())
	which := &fl.candidates[0]
	if which.verdict == fresh {
		pos, err := j.Append(c.AppendHead(nil), c.Entries, appendFingerprint(c.AppendTail(nil), which.fingerprint[:]))
		if err := errors.Join(err, j.Sync(t.Context(), pos)); err != nil {
			t.Fatal(err)
		}
		which.pos = pos
	}
	f.finish(fl)
	return which.verdict
}

// TestRepeatsSurviveRestart: from the file, from the journal alone, and from
// half of each.
func TestRepeatsSurviveRestart(t *testing.T) {
	for _, tc := range []struct {
		name   string
		saves  bool
		damage func(path string) error
	}{
		{"saved", true, nil},
		{"not saved", false, nil},
		{"saved, and the last record torn", true, func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(b, 1, 2, 3), 0o600))
		}},
		{"saved, and the file gone", true, os.Remove},
		{"saved, and the file empty", true, func(path string) error { return os.Truncate(path, 0) }},
		{"not saved, and the file damaged", false, func(path string) error { return os.Truncate(path, 5) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			f, j := openTestRepeats(t, dir)
			put(t, f, j, chunk("a", "t", "p", "e", 1))
			if tc.saves {
				if err := f.save(j.Synced()); err != nil {
					t.Fatal(err)
				}
			}
			put(t, f, j, chunk("b", "t", "p", "e", 1))
			if err := errors.Join(f.close(), j.Close()); err != nil {
				t.Fatal(err)
			}
			if tc.damage != nil {
				if err := tc.damage(f.path); err != nil {
					t.Fatal(err)
				}
			}
			f, j = openTestRepeats(t, dir)
			defer j.Close()
			defer f.close()
			for _, id := range []string{"a", "b"} {
				if v := put(t, f, j, chunk(id, "t", "p", "e", 1)); v != repeat {
					t.Errorf("%s: got %v, want repeat", id, v)
				}
			}
			if v := put(t, f, j, chunk("c", "t", "p", "e", 1)); v != fresh {
				t.Errorf("c: got %v, want fresh", v)
			}
		})
	}
}

func TestUnreadableRepeatsFileIsSetAside(t *testing.T) {
	dir := t.TempDir()
	junk := bytes.Repeat([]byte("no repeats "), 10)
	if err := os.WriteFile(filepath.Join(dir, "repeats"), junk, 0o600); err != nil {
		t.Fatal(err)
	}
	f, j := openTestRepeats(t, dir)
	defer j.Close()
	defer f.close()
	aside, err := filepath.Glob(filepath.Join(dir, "repeats.unreadable.*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("set aside: %v, %v", aside, err)
	}
	if b, _ := os.ReadFile(aside[0]); !bytes.Equal(b, junk) {
		t.Error("what was set aside is not what was there")
	}
}

// TestFailedRewriteLeavesNothing: what did not become the file takes no room on the disk.
func TestFailedRewriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, j := openTestRepeats(t, dir)
	defer j.Close()
	defer f.close()
	put(t, f, j, chunk("a", "t", "p", "e", 1))
	path := f.path
	f.path = filepath.Join(dir, "journal") // a directory, which no file replaces
	f.stale = true
	if err := f.save(j.Synced()); err == nil {
		t.Fatal("a directory was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	f.path = path
	if err := f.save(j.Synced()); err != nil {
		t.Error(err)
	}
}

// TestSavedIsSettled: the cursor must not pass a chunk whose fingerprint is neither
// saved nor about to be.
func TestSavedIsSettled(t *testing.T) {
	dir := t.TempDir()
	f, j := openTestRepeats(t, dir)
	defer j.Close()
	defer f.close()
	put(t, f, j, chunk("a", "t", "p", "e", 1))
	floor := j.Synced()
	slow := chunk("slow", "t", "p", "e", 1)
	f.begin(fly(f.repeats, slow), floor)
	put(t, f, j, chunk("b", "t", "p", "e", 1))
	if err := f.save(j.Synced()); err != nil {
		t.Fatal(err)
	}
	if at, _ := f.cursor.Committed(); at != floor {
		t.Errorf("the cursor is at %d, a chunk in flight began at %d", at, floor)
	}
}

func BenchmarkFingerprint(b *testing.B) {
	r, err := newRepeats(make([]byte, 16))
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{140, 140_000} {
		b.Run(map[int]string{140: "event", 140_000: "chunk"}[size], func(b *testing.B) {
			c := chunk("AAAAAAAAAAAAAAAAAAAAAAAA", "app.web", "127.0.0.1", string(make([]byte, size)), 1)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.fingerprint(c.Chunk, c.from.peer)
			}
		})
	}
}

func BenchmarkRepeats(b *testing.B) {
	r, err := newRepeats(make([]byte, 16))
	if err != nil {
		b.Fatal(err)
	}
	f := &inFlightGroup{candidates: []candidate{{conn: 1}}}
	c := &f.candidates[0]
	var n uint64
	b.ReportAllocs()
	for b.Loop() {
		n++
		binary.LittleEndian.PutUint64(c.fingerprint[:], n*0x9e3779b97f4a7c15)
		r.begin(f, 0)
		c.pos = journal.Position(n)
		r.finish(f)
		r.unsaved = r.unsaved[:0]
	}
}

// FuzzRepeatsFile: whatever stands in the file, it is set aside or read, each whole record of it
// once. TestSavedIsDurable: a power cut takes from the journal what was never synced. Then the file
// must not say that it is there: the sender sends it again, and it would be taken for a repeat, and
// acked, and be nowhere.
func TestSavedIsDurable(t *testing.T) {
	for name, stale := range map[string]bool{"added to": false, "written anew": true} {
		t.Run(name, func(t *testing.T) {
			f, j := openTestRepeats(t, t.TempDir())
			defer j.Close()
			defer f.close()
			put(t, f, j, chunk("a", "t", "p", "e", 1))
			synced := j.Synced()
			put(t, f, j, chunk("b", "t", "p", "e", 1)) // as if it were not synced yet
			f.stale = stale
			if err := f.save(synced); err != nil {
				t.Fatal(err)
			}
			if n := inFile(t, f, math.MaxUint64); n != 1 {
				t.Errorf("%d fingerprints were saved, want that of the one chunk that is durable", n)
			}
			if err := f.save(j.Synced()); err != nil {
				t.Fatal(err)
			}
			if n := inFile(t, f, math.MaxUint64); n != 2 {
				t.Errorf("%d fingerprints were saved in the end, want 2", n)
			}
			if n := inFile(t, f, synced); n != 1 { // as an earlier version may have left it
				t.Errorf("%d fingerprints were loaded, want that of the one chunk that the journal has", n)
			}
		})
	}
}

// inFile is how many fingerprints are loaded from a file when the journal is durable up to synced.
func inFile(t *testing.T, f *repeatsFile, synced journal.Position) int {
	t.Helper()
	b, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := newRepeats(f.key)
	if err == nil {
		err = (&repeatsFile{repeats: again}).load(bytes.NewReader(b[seenHeaderSize:]), synced)
	}
	if err != nil {
		t.Fatal(err)
	}
	return again.slots.n
}

func FuzzRepeatsFile(f *testing.F) {
	good := appendSum(append([]byte(seenMagic), make([]byte, 16)...), 0)
	f.Add(good)
	f.Add(appendSeen(good, fingerprint{1}, 8, 1_700_000_000))
	f.Add(append(appendSeen(good, fingerprint{1}, 8, 1_700_000_000), 1, 2, 3))
	f.Add([]byte(seenMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		key, err := readSeenHeader(r)
		if err != nil && !errors.Is(err, errNoRepeats) {
			t.Fatal(err)
		}
		if key == nil {
			return
		}
		most := r.Len() / seenRecordSize
		window, err := newRepeats(key)
		if err != nil {
			t.Fatal(err)
		}
		window.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
		file := &repeatsFile{repeats: window}
		if err := file.load(r, math.MaxUint64); err != nil {
			t.Fatal(err)
		}
		if window.slots.n > most {
			t.Errorf("%d fingerprints out of %d records", window.slots.n, most)
		}
	})
}
