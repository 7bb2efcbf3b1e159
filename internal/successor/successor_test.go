// SPDX-License-Identifier: Apache-2.0

package successor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

func TestMain(m *testing.M) { os.Exit(needs.Main(m)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A scene has a folder of folders of rings, and one for spills.
type scene struct {
	t         testing.TB
	path      string // of the successor
	mem       string // a folder of rings in it
	dir       string // of spills
	told      []string
	now       time.Time
	successor *Successor
	put       uint32
}

func newScene(t testing.TB, change func(*Options)) *scene {
	t.Helper()
	path, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s := &scene{
		t: t, path: path, mem: filepath.Join(path, "spillway-0"), dir: filepath.Join(path, "spills"),
		now: time.Unix(1e9, 0),
	}
	o := Options{Path: path, MaxRing: 1 << 20, Report: func(err error) { s.told = append(s.told, err.Error()) }}
	if change != nil {
		change(&o)
	}
	s.successor = New(&o)
	s.successor.now = func() time.Time { return s.now }
	return s
}

func (s *scene) open(destination string) *ring.Ring {
	s.t.Helper()
	r, err := ring.Open(&ring.Options{
		Dir: s.mem, Name: "app", Identity: []byte(destination + "\x00" + s.dir),
		Size: 256 << 10,
	})
	if errors.Is(err, ring.ErrUnsupported) {
		needs.Skip(s.t, "no shared memory that outlives a process here")
	}
	must(s.t, err)
	return r
}

// record is an event's record, with a number.
func record(n uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0x81, 0xa1, 'n', 0xce}, n)
}

// append appends n events, which have numbers in their order.
func (s *scene) append(r *ring.Ring, tag string, n int) {
	s.t.Helper()
	var h ring.Hint
	for range n {
		_, err := r.Append(&h, int64(time.Second), append(window.AppendPayload(nil, tag), record(s.put)...))
		must(s.t, err)
		s.put++
	}
}

// orphan is a ring with ten events, as a process leaves it that was killed.
func (s *scene) orphan(destination string) string {
	s.t.Helper()
	r := s.open(destination)
	s.append(r, "a", 10)
	must(s.t, r.Leave())
	return r.Path()
}

// dueOrphan is an orphan that the successor has looked at.
func (s *scene) dueOrphan(destination string) string {
	s.t.Helper()
	path := s.orphan(destination)
	s.look()
	return path
}

func (s *scene) look() []string {
	s.t.Helper()
	due, err := s.successor.Look()
	must(s.t, err)
	return due
}

func (s *scene) take(path string, known ...ID) *Legacy {
	s.t.Helper()
	l := s.successor.Take(path, known)
	if l == nil {
		s.t.Fatalf("%s is not taken over: %q", path, s.told)
	}
	return l
}

// numbers are those of the events in chunks.
func numbers(t testing.TB, chunks []*forward.Chunk) (all []uint32) {
	t.Helper()
	for _, c := range chunks {
		if !c.UniqueID || len(c.ID) != window.IDLen {
			t.Errorf("chunk %q, own: %t", c.ID, c.UniqueID)
		}
		entries := forward.ReadEntries(c.Entries)
		n := 0
		for e, ok := entries.Next(); ok; e, ok = entries.Next() {
			n++
			if b := e.Record; len(b) == 8 {
				all = append(all, binary.BigEndian.Uint32(b[4:]))
			} else {
				t.Errorf("record %x", b)
			}
		}
		must(t, entries.Err())
		if n != c.Events {
			t.Errorf("a chunk of %d events says %d", n, c.Events)
		}
	}
	return all
}

// all takes everything out of a legacy.
func all(t testing.TB, l *Legacy) (got []uint32) {
	t.Helper()
	for {
		chunks, err := l.Next()
		must(t, err)
		if len(chunks) == 0 {
			must(t, l.Finish())
			return got
		}
		got = append(got, numbers(t, chunks)...)
		must(t, l.Done())
	}
}

func upTo(n uint32) (all []uint32) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func (s *scene) wantNothing(dirs ...string) {
	s.t.Helper()
	for _, dir := range dirs {
		left, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 {
			s.t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// TestAfter: a ring is due when nobody has had it for so long, as far as this successor has looked.
func TestAfter(t *testing.T) {
	s := newScene(t, func(o *Options) { o.After = 5 * time.Second })
	r := s.open("forward://x:1")
	s.append(r, "a", 10)
	pass := func(d time.Duration, want int, what string) {
		t.Helper()
		s.now = s.now.Add(d)
		if due := s.look(); len(due) != want {
			t.Errorf("%s: due are %q", what, due)
		}
	}
	pass(0, 0, "its process lives")
	pass(time.Hour, 0, "its process lives on")
	must(t, r.Leave())
	pass(time.Second, 0, "it has died")
	pass(5*time.Second-1, 0, "it is dead for less than 5 s")
	successors, err := ring.Adopt(s.mem, "app", nil, nil)
	must(t, err)
	pass(time.Second, 0, "a logger has taken it over")
	must(t, successors[0].Leave())
	pass(time.Second, 0, "that one has died")
	pass(5*time.Second, 1, "and for 5 s")
	if got := all(t, s.take(r.Path())); !slices.Equal(got, upTo(10)) {
		t.Errorf("got %v", got)
	}
	pass(time.Second, 0, "it is gone")
	s.wantNothing(s.mem)
	if len(s.told) > 0 {
		t.Errorf("told: %q", s.told)
	}
	if len(s.successor.seen) > 0 {
		t.Errorf("what is gone is remembered: %v", s.successor.seen)
	}
}

// TestFair: of each folder one ring comes before a second of any.
func TestFair(t *testing.T) {
	s := newScene(t, nil)
	many := s.mem
	for range 4 {
		s.orphan("forward://x:1")
	}
	s.mem += "0"
	one := s.orphan("forward://x:1")
	due := s.look()
	if len(due) != 5 || slices.Index(due, one) > 1 || filepath.Dir(due[4]) != many {
		t.Errorf("due: %q", due)
	}
}

// TestWants: rings for files know what is written already, which this successor does not.
func TestWants(t *testing.T) {
	for destination, forward := range map[string]bool{
		"forward://x:1": true, "forward+tls://x:1": true, "forward+unix:///run/x": true,
		"file:///var/log/x": false, "stdout:": false, "func:forward": false, "": false,
	} {
		for _, any := range []bool{false, true} {
			s := newScene(t, func(o *Options) { o.Any = any })
			path := s.orphan(destination)
			want := forward || any
			if due := s.look(); len(due) > 0 != want {
				t.Errorf("%s, any=%t: %q", destination, any, due)
			}
			if want {
				if got := all(t, s.take(path)); !slices.Equal(got, upTo(10)) {
					t.Errorf("%s, any=%t: %v", destination, any, got)
				}
			}
		}
	}
}

// TestLiving: a ring that somebody has is not touched, whatever Look has said before.
func TestLiving(t *testing.T) {
	s := newScene(t, nil)
	path := s.orphan("forward://x:1")
	if due := s.look(); len(due) != 1 {
		t.Fatalf("due: %q", due)
	}
	first, err := ring.Adopt(s.mem, "app", nil, nil)
	must(t, err)
	if l := s.successor.Take(path, nil); l != nil {
		t.Fatal("a ring that a logger has was taken over")
	}
	if due := s.look(); len(due) > 0 || len(s.told) > 0 {
		t.Errorf("due: %q, told: %q", due, s.told)
	}
	must(t, first[0].Leave())
	if due := s.look(); len(due) != 1 {
		t.Fatalf("due: %q", due)
	}
	l := s.take(path)
	if others, err := ring.Adopt(s.mem, "app", nil, nil); err != nil || len(others) > 0 {
		t.Errorf("a logger has taken over what this successor has: %v", err)
	}
	all(t, l)
}

// TestSameIDs: what was handed out and not done comes again in the same chunks, and not at all if
// it is known.
func TestSameIDs(t *testing.T) {
	for _, known := range []bool{false, true} {
		s := newScene(t, nil)
		r := s.open("forward://x:1")
		s.append(r, "a", 10)
		s.append(r, "b", 10)
		must(t, r.Leave())
		s.look()
		l := s.take(r.Path())
		chunks, err := l.Next()
		must(t, err)
		var ids []ID
		for _, c := range chunks {
			ids = append(ids, ID(c.ID))
		}
		before := numbers(t, chunks)
		must(t, l.Leave())
		if due := s.look(); len(due) > 0 {
			t.Errorf("what was left is due at once: %q", due)
		}
		s.now = s.now.Add(leaveFor)
		if due := s.look(); len(due) != 1 {
			t.Fatalf("due: %q", due)
		}
		if known {
			l = s.take(r.Path(), ids...)
			if got := all(t, l); len(got) > 0 || len(l.Known) != len(ids) {
				t.Errorf("what is known came again: %v, known %d", got, len(l.Known))
			}
		} else {
			l = s.take(r.Path())
			again, err := l.Next()
			must(t, err)
			for i, c := range again {
				if ID(c.ID) != ids[i] {
					t.Errorf("chunk %d has another id", i)
				}
			}
			if got := numbers(t, again); !slices.Equal(got, before) || len(got) != 20 {
				t.Errorf("%v, before %v", got, before)
			}
			must(t, l.Done())
			all(t, l)
		}
		s.wantNothing(s.mem)
	}
}

// TestBadOnce: what is no event is counted once, however often the ring is left.
func TestBadOnce(t *testing.T) {
	s := newScene(t, nil)
	r := s.open("forward://x:1")
	for range 2 { // under the mark of the chunk, and behind it
		s.append(r, "a", 10)
		var h ring.Hint
		_, err := r.Append(&h, int64(time.Second), append(window.AppendPayload(nil, "a"), 0xc1))
		must(t, err)
	}
	must(t, r.Leave())
	bad := uint64(0)
	for range 3 {
		s.look()
		l := s.take(r.Path())
		_, err := l.Next()
		must(t, errors.Join(err, l.Leave()))
		bad += l.Bad
		s.now = s.now.Add(leaveFor)
	}
	s.look()
	l := s.take(r.Path())
	if got := all(t, l); len(got) != 20 || bad+l.Bad != 2 {
		t.Errorf("%d events, %d bad ones", len(got), bad+l.Bad)
	}
}

// spill makes a spill of the ring's owner, with chunks of an event each.
func (s *scene) spill(r *ring.Ring, n int) string {
	s.t.Helper()
	folder := spill.New(&spill.Options{
		Name: "app", Identity: r.Owner().Identity, Dir: s.dir, Shm: s.mem, MaxDisk: 16 << 20,
		BootID: func() string { return r.Owner().BootID }, Report: func(err error) { s.t.Error(err) },
	})
	sp, err := folder.Make(r.Path(), time.Now())
	must(s.t, err)
	for range n {
		at := make([]journal.Position, 1)
		entry := append([]byte{0x92, 0xd7, 0, 0, 0, 0, 1, 0, 0, 0, 0}, record(s.put)...)
		s.put++
		c := forward.Chunk{Tag: "a", ID: forward.NewID(), UniqueID: true, Entries: entry, Events: 1}
		must(s.t, errors.Join(sp.Append([]forward.Chunk{c}, at), sp.Flush(at[0])))
	}
	must(s.t, sp.Close())
	return sp.Dir
}

// TestSpill: what a process had spilled comes before the rest of its ring, and goes with it.
func TestSpill(t *testing.T) {
	for _, broken := range []bool{false, true} {
		s := newScene(t, nil)
		r := s.open("forward://x:1")
		dir := s.spill(r, 50)
		s.append(r, "a", 10)
		must(t, r.Leave())
		s.look()
		l := s.take(r.Path())
		var got []uint32
		if broken { // in the middle
			chunks, err := l.Next()
			must(t, err)
			got = numbers(t, chunks)
			must(t, errors.Join(l.Done(), l.Leave()))
			s.now = s.now.Add(leaveFor)
			s.look()
			l = s.take(r.Path())
		}
		if got = append(got, all(t, l)...); !slices.Equal(got, upTo(60)) {
			t.Errorf("broken=%t: %v", broken, got)
		}
		if l.Spills != 1 {
			t.Errorf("%d spills: %q", l.Spills, s.told)
		}
		if _, err := os.Lstat(dir); err == nil {
			t.Error("the spill is left")
		}
		s.wantNothing(s.mem, s.dir)
	}
}

// TestCutShort: the removal of a ring or a spill that a kill cut short is gone on with.
func TestCutShort(t *testing.T) {
	s := newScene(t, nil)
	left := s.orphan("forward://x:1")
	must(t, os.Rename(left, left+".tmp"))
	opening := filepath.Join(s.mem, "app.1.0123456789abcdef.tmp") // a moment ago
	must(t, os.Mkdir(opening, 0o700))
	s.look()
	if _, err := os.Lstat(left + ".tmp"); err == nil {
		t.Error("a ring that was being removed is there still")
	}
	must(t, os.Remove(opening))
	r := s.open("forward://x:1")
	sp := s.spill(r, 5)
	must(t, os.Rename(filepath.Join(sp, "owner.json"), filepath.Join(sp, "empty")))
	s.append(r, "a", 10)
	must(t, r.Leave())
	s.look()
	if got := all(t, s.take(r.Path())); !slices.Equal(got, upTo(25)[15:]) {
		t.Errorf("got %v", got)
	}
	s.wantNothing(s.mem, s.dir)
}

// TestSpillInUse: while somebody has the spill, the ring stays.
func TestSpillInUse(t *testing.T) {
	s := newScene(t, nil)
	r := s.open("forward://x:1")
	dir := s.spill(r, 5)
	s.append(r, "a", 10)
	must(t, r.Leave())
	lock, err := journal.Lock(dir)
	must(t, err)
	for range 2 {
		if len(s.told) > 0 {
			t.Errorf("told at once: %q", s.told)
		}
		if due := s.look(); len(due) != 1 {
			t.Fatalf("due: %q", due)
		}
		if l := s.successor.Take(r.Path(), nil); l != nil {
			t.Fatal("the ring was taken over without its spill")
		}
		s.now = s.now.Add(lockedFor)
	}
	if due := s.look(); len(due) > 0 || len(s.told) != 1 || !strings.Contains(s.told[0], "left alone") {
		t.Errorf("told: %q", s.told)
	}
	must(t, lock.Close())
	s.now = s.now.Add(leaveFor)
	s.look()
	if got := all(t, s.take(r.Path())); !slices.Equal(got, upTo(15)) {
		t.Errorf("got %v", got)
	}
}

// TestSpillElsewhere: as root a folder of spills is opened only where the owner of the ring has it,
// and no link leads to it. Else the ring stays, for nothing else leads to the spill.
func TestSpillElsewhere(t *testing.T) {
	needs.Have(t, os.Geteuid() == 0, "only root gives files to others")
	const user = 12345
	give := func(dir string) {
		must(t, filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(name, user, user))
		}))
	}
	for name, do := range map[string]func(s *scene, spill string){
		"his":                nil,
		"the folder is ours": func(s *scene, _ string) { must(t, os.Chown(s.dir, 0, 0)) },
		"the folder's a link": func(s *scene, _ string) {
			must(t, errors.Join(os.Rename(s.dir, s.dir+"2"), os.Symlink(s.dir+"2", s.dir)))
		},
		"the spill is a link": func(_ *scene,
			sp string,
		) {
			must(t, errors.Join(os.Rename(sp, sp+"2"), os.Symlink(sp+"2", sp)))
		},
		"the spill is too long": func(_ *scene, sp string) {
			must(t, os.Truncate(filepath.Join(sp, "seg-0000000000000001.log"), 1<<32))
		},
		"the spill is ours": func(_ *scene, sp string) { must(t, os.Chown(sp, 0, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, nil)
			r := s.open("forward://x:1")
			sp := s.spill(r, 5)
			s.append(r, "a", 10)
			must(t, r.Leave())
			give(s.mem)
			give(s.dir)
			if do == nil {
				s.look()
				if got := all(t, s.take(r.Path())); !slices.Equal(got, upTo(15)) {
					t.Errorf("got %v, told %q", got, s.told)
				}
				s.wantNothing(s.mem, s.dir)
				return
			}
			do(s, sp)
			before := list(t, s.path)
			s.look()
			if l := s.successor.Take(r.Path(), nil); l != nil {
				t.Fatal("the ring was taken over without its spill")
			}
			if after := list(t, s.path); !slices.Equal(before, after) {
				t.Errorf("changed: %q, before %q", after, before)
			}
			if len(s.told) == 0 {
				t.Error("nothing was told")
			}
		})
	}
}

// TestSpillNotThere: where the folder of spills is not there, there was none; but not if the
// process was just spilling.
func TestSpillNotThere(t *testing.T) {
	s := newScene(t, nil)
	if got := all(t, s.take(s.dueOrphan("forward://x:1"))); !slices.Equal(got, upTo(10)) {
		t.Errorf("got %v", got)
	}
	r := s.open("forward://x:1")
	s.append(r, "a", 10)
	source := window.Feed{Ring: r}
	var mem window.Buffers
	w := window.NewCutter(false, &mem)
	if !w.Cut(&source, cutBytes) {
		t.Fatal("nothing was cut")
	}
	var k window.Marked
	w.Take(0, &k)
	w.Mark([]*window.Marked{&k}, window.ToSpill)
	w.Done()
	must(t, r.Leave())
	s.look()
	if l := s.successor.Take(r.Path(), nil); l != nil {
		t.Fatal("the ring was taken over without its spill")
	}
	if len(s.told) != 1 || !strings.Contains(s.told[0], s.dir) {
		t.Errorf("told: %q", s.told)
	}
	must(t, os.Mkdir(s.dir, 0o700))
	s.now = s.now.Add(leaveFor)
	s.look()
	if got := all(t, s.take(r.Path())); !slices.Equal(got, upTo(20)[10:]) {
		t.Errorf("got %v", got)
	}
}

// list lists a tree.
func list(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			info, ierr := d.Info()
			must(t, ierr)
			line := fmt.Sprint(name, info.Mode(), info.ModTime())
			if filepath.Base(name) == "ring" { // which is mapped for a moment
				line = name
			}
			all = append(all, line)
		}
		return err
	}))
	return all
}

// TestLeftAlone: what cannot be taken over is told once, and not tried all the time.
func TestLeftAlone(t *testing.T) {
	s := newScene(t, nil)
	path := s.orphan("forward://x:1")
	must(t, os.Truncate(filepath.Join(path, "ring"), 10))
	large := s.open("forward://x:1")
	s.successor.opt.MaxRing = 128 << 10
	must(t, large.Leave())
	for range 3 {
		for _, p := range s.look() {
			if l := s.successor.Take(p, nil); l != nil {
				t.Fatalf("%s was taken over", p)
			}
		}
		if len(s.look()) > 0 {
			t.Error("it is tried again at once")
		}
		s.now = s.now.Add(leaveFor)
	}
	if len(s.told) != 2 {
		t.Errorf("told: %q", s.told)
	}
}
