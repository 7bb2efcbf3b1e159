// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A world is a directory, a journal of lines, and what was committed of it. A process in it appends
// the journal's lines from the committed position on, and dies at a given tick: every byte written,
// every sync, rename, record and commit is one.
type world struct {
	t       *testing.T
	dir     string
	pattern string
	o       Options
	lines   []event
	tags    int
	whole   bool // a kill tears no write
	opened  func()
	before  func(i int) // line i is appended

	position  int // committed
	state     []byte
	often     bool // a commit follows each Write
	processes int
	ticks     int // left until the process dies; negative is for ever
}

type event struct {
	tag  string
	sec  int64
	line string
}

type killed struct{}

// tick passes, or kills the process.
func (w *world) tick() {
	if w.ticks == 0 {
		panic(killed{})
	}
	w.ticks--
}

func newWorld(t *testing.T, pattern string, tags, lines int, o Options) *world {
	w := &world{t: t, dir: t.TempDir(), pattern: pattern, o: o, tags: tags}
	for i := range lines {
		tag := fmt.Sprintf("t%d", i%tags)
		sec := int64(i/4) * 1800
		// Lines that begin alike, of different length, and every third one equal to one before.
		same := i % 3 / 2
		if o.NewFiles > 0 {
			same = 0
		}
		text := fmt.Sprintf("{%s %d}%s\n", tag, i-same, strings.Repeat("x", i%4))
		w.lines = append(w.lines, event{tag, sec, text})
	}
	return w
}

func (w *world) options() *Options {
	o := w.o
	o.self = &identity{host: "host", pid: fmt.Sprint(100 + w.processes)}
	o.kernel = &kernel{
		write: func(f *os.File, b []byte) (int, error) {
			n := len(b)
			if w.ticks >= 0 {
				n = min(n, w.ticks)
			}
			if w.whole && n < len(b) {
				panic(killed{})
			}
			if _, err := f.Write(b[:n]); err != nil {
				return 0, err
			}
			if w.ticks >= 0 {
				w.ticks -= n
			}
			if n < len(b) {
				panic(killed{})
			}
			return n, nil
		},
		sync:    func(*os.File) error { w.tick(); return nil },
		syncDir: func(string) error { w.tick(); return nil },
		rename: func(from, to string) error {
			w.tick()
			err := os.Rename(from, to)
			w.tick()
			return err
		},
	}
	return &o
}

// run is one process. It reports whether it came to the end before it died.
func (w *world) run(ticks int) (done bool) {
	w.t.Helper()
	w.processes++
	w.ticks = ticks
	o := w.options()
	synced := w.position // position of the last Sync
	o.Record = func(state []byte) error {
		w.tick()
		w.position, w.state = synced, state
		w.tick()
		return nil
	}
	var s *Set
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(killed); !ok {
				panic(v)
			}
		}
		if s != nil {
			w.ticks = -1
			if s.rotator.keeper != nil && !done { // it ends, whatever is due
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				s.rotator.keeper.close(ctx)
				s.rotator.keeper = nil
			}
			s.Close() // the kernel does that for a dead process
		}
	}()
	s, err := Open(filepath.Join(w.dir, w.pattern), w.state, o)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.opened != nil {
		w.opened()
	}
	s.Checkpoints(true)
	next := max(w.position, s.Resumed().Events)
	s.Reached()
	every := 8
	if w.crowded() {
		every = 25
	}
	for i := next; i < len(w.lines); i++ {
		e := w.lines[i]
		if w.before != nil {
			w.before(i)
		}
		err := extend(s, e.tag, e.sec, e.line)
		if errors.Is(err, ErrCrowded) {
			if err := s.Checkpoint(Point{"journal", i}); err != nil {
				w.t.Fatal(err)
			}
			err = extend(s, e.tag, e.sec, e.line)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		if s.Crowded() {
			if err := s.Checkpoint(Point{"journal", i + 1}); err != nil {
				w.t.Fatal(err)
			}
		}
		written := i%3 == 0
		if written {
			if err := s.Write(); err != nil {
				w.t.Fatal(err)
			}
		}
		if i%every == 0 || i == len(w.lines)-1 || w.often && written {
			if err := s.Write(); err != nil {
				w.t.Fatal(err)
			}
			now := s.State()
			state, err := s.Sync()
			if err != nil {
				w.t.Fatal(err)
			}
			if !bytes.Equal(state, now) {
				w.t.Fatalf("State %x, Sync after it %x", now, state)
			}
			synced = i + 1
			if err := o.Record(state); err != nil { // the commit
				w.t.Fatal(err)
			}
		}
	}
	return true
}

// crowded says that the world has more files than fit between two commits.
func (w *world) crowded() bool { return w.o.NewFiles > 0 || w.o.MaxOpen == 1 && w.tags > 8 }

// stamp is what rotation puts into a name.
var stamp = regexp.MustCompile(`-\d{8}T\d{6}\.\d{3}`)

// content returns the lines of all files, each file's in order, under the name with the number of
// the process left out.
func (w *world) content() map[string][]string {
	w.t.Helper()
	got := map[string][]string{}
	var paths []string
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(paths) // processes have numbers of three digits
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		name, _ := filepath.Rel(w.dir, path)
		if i := strings.Index(name, "#"); i >= 0 {
			name = name[:i] + name[i+4:]
		}
		if strings.HasSuffix(path, unfinishedEnd) {
			continue
		}
		if plain, packed := cutPacked(path); packed {
			if slices.Contains(paths, plain) {
				continue // killed before it was removed
			}
			b = unpack(w.t, b)
			name, _ = cutPacked(name)
		}
		if size := w.o.Rotation.Size; size > 0 && int64(len(b)) > size && bytes.Count(b, []byte("\n")) > 1 {
			w.t.Fatalf("%s is too large: %q", path, b)
		}
		name = stamp.ReplaceAllString(name, "") // "-" sorts before "."
		got[name] = append(got[name], strings.SplitAfter(strings.TrimSuffix(string(b), "\n"), "\n")...)
		if n := len(got[name]); len(b) > 0 {
			got[name][n-1] += string(b[len(b)-1:])
		} else {
			got[name] = got[name][:n-1]
		}
	}
	return got
}

// check wants every line once, in the order of the journal.
func (w *world) check(seed string) {
	w.t.Helper()
	p, err := parsePattern(filepath.Join(w.dir, w.pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	got := w.content()
	rest := map[string]bool{} // lines in the file for the rest
	if r, ok := p.rest(); ok && w.o.NewFiles > 0 {
		name, _ := filepath.Rel(w.dir, p.path(r, identity{}))
		for _, line := range got[name] {
			rest[line] = true
		}
	}
	want := map[string][]string{}
	for _, e := range w.lines {
		if r, _ := p.rest(); rest[e.line] {
			e.tag = r.tag
			if r.slot == restSlot {
				name, _ := filepath.Rel(w.dir, p.path(r, identity{}))
				want[name] = append(want[name], e.line)
				continue
			}
		}
		path := p.path(p.route(e.tag, e.sec), identity{host: "host", pid: ""})
		name, _ := filepath.Rel(w.dir, strings.Replace(path, "#", "", 1))
		want[name] = append(want[name], e.line)
	}
	for name, lines := range got {
		if len(lines) == 0 {
			delete(got, name)
		}
	}
	for name := range want {
		if !slices.Equal(got[name], want[name]) {
			w.t.Fatalf("%s: %s\n got %q\nwant %q", seed, name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		w.t.Fatalf("%s: files that nobody wanted: %q", seed, got)
	}
}

var worlds = []struct {
	name, pattern string
	tags, lines   int
	o             Options
}{
	{"one file", "all.jsonl", 1, 20, Options{}},
	{"small buffer", "all.jsonl", 1, 20, Options{Buffer: 20}},
	{"tags", "{tag}.jsonl", 3, 24, Options{}},
	{"few open", "{tag}.jsonl", 5, 30, Options{MaxOpen: 2}},
	{"one open, little memory", "{tag}.jsonl", 3, 20, Options{MaxOpen: 1, Memory: 2500, Buffer: 30}},
	{"dates", "{tag}/{date}-{hour}.jsonl", 2, 40, Options{MaxOpen: 2}},
	{"pids", "{tag}#{pid}.jsonl", 2, 24, Options{}},
	{"not synced", "all.jsonl", 1, 20, Options{NoSync: true}},
	{"rotated", "all.jsonl", 1, 30, Options{NoSync: true, Rotation: Rotation{Size: 60}}},
	{"rotated and synced", "all.jsonl", 1, 30, Options{Buffer: 20, Rotation: Rotation{Size: 60}}},
	{"rotated, tags, few open", "{tag}.jsonl", 3, 30, Options{MaxOpen: 2, NoSync: true, Rotation: Rotation{Size: 30}}},
	{"rotated often", "all.jsonl", 1, 20, Options{Rotation: Rotation{Size: 25}}},
	{"rotated often, not synced", "all.jsonl", 1, 20, Options{NoSync: true, Buffer: 40, Rotation: Rotation{Size: 25}}},
	{"rotated each line", "{tag}.jsonl", 2, 14, Options{MaxOpen: 1, Rotation: Rotation{Size: 1}}},
	{"compressed", "{tag}.jsonl", 2, 20, Options{MaxOpen: 2, Rotation: Rotation{Size: 20, Compress: "gzip"}}},
	{
		"compressed, pids", "{tag}#{pid}.jsonl", 2, 20,
		Options{NoSync: true, Rotation: Rotation{Size: 20, Compress: "zstd"}},
	},
	{"rotated, pids", "{tag}#{pid}.jsonl", 2, 30, Options{NoSync: true, Rotation: Rotation{Size: 30}}},
	{"more files than a state should name", "{tag}.jsonl", 24, 36, Options{MaxOpen: 1}},
	{"new tags", "{tag}.jsonl", 8, 30, Options{NewFiles: 3}},
	{"new dates", "{tag}/{date}-{hour}.jsonl", 2, 40, Options{NewFiles: 3, MaxOpen: 2}},
	{"new hours, rotated", "{hour}.jsonl", 1, 40, Options{NewFiles: 2, Rotation: Rotation{Size: 60}}},
	{"new tags, not synced", "{tag}.jsonl", 16, 30, Options{NewFiles: 3, NoSync: true}},
	{"pids, few open", "{tag}#{pid}.jsonl", 4, 24, Options{MaxOpen: 2}},
}

// TestKillAnywhere kills a process at every tick, and lets the next one finish. The race detector,
// under which that takes minutes and which has one goroutine to look at, gets each third tick.
func TestKillAnywhere(t *testing.T) {
	for _, ww := range worlds {
		for _, often := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", ww.name, often), func(t *testing.T) {
				t.Parallel()
				step := 1
				switch {
				case testing.Short():
					step = 7
				case raceEnabled:
					step = 3
				}
				for ticks := rand.IntN(step); ; ticks += step {
					w := newWorld(t, ww.pattern, ww.tags, ww.lines, ww.o)
					w.often = often
					done := w.run(ticks)
					if !done && !w.run(-1) {
						t.Fatal("the second process did not finish")
					}
					w.check(fmt.Sprintf("killed at %d", ticks))
					os.RemoveAll(w.dir)
					if done {
						return
					}
				}
			})
		}
	}
}

// TestKillAgain kills several processes in a row at random ticks.
func TestKillAgain(t *testing.T) {
	for _, ww := range worlds {
		t.Run(ww.name, func(t *testing.T) {
			t.Parallel()
			for round := range 40 {
				r := rand.New(rand.NewPCG(uint64(round), 7))
				w := newWorld(t, ww.pattern, ww.tags, ww.lines, ww.o)
				w.often = round%2 == 1
				var kills []int
				for range 1 + r.IntN(5) {
					ticks := r.IntN(150)
					kills = append(kills, ticks)
					if w.run(ticks) {
						break
					}
				}
				if !w.run(-1) {
					t.Fatal("the last process did not finish")
				}
				w.check(fmt.Sprintf("killed at %d", kills))
				os.RemoveAll(w.dir)
			}
		})
	}
}
