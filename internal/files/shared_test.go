// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// haveSharing asks for what a way of sharing needs.
func haveSharing(t testing.TB, how Sharing) {
	t.Helper()
	needs.Have(t, how != SharedLock || CanLock, "locks of files")
}

// A party is a process that writes a shared file, and its heirs.
type party struct {
	o     Options
	path  string
	lines []string
	chunk int // lines of each

	position int // committed
	state    []byte
	ticks    int // left until the process dies; negative is for ever
	set      *Set
}

func (p *party) tick() {
	if p.ticks == 0 {
		panic(killed{})
	}
	p.ticks--
}

// piece writes, and is killed within it.
func (p *party) piece(b []byte, write func([]byte) (int, error)) (int, error) {
	n := len(b)
	if p.ticks >= 0 {
		n = min(n, p.ticks)
		p.ticks -= n
	}
	m, err := write(b[:n])
	if err == nil && n < len(b) {
		panic(killed{})
	}
	return m, err
}

func (p *party) open(t *testing.T) {
	t.Helper()
	o := p.o
	o.NoSync = true
	o.Record = func(state []byte) error {
		p.tick()
		p.state = state
		p.tick()
		return nil
	}
	if o.kernel == nil {
		o.kernel = &kernel{
			write: func(f *os.File, b []byte) (int, error) { return p.piece(b, f.Write) },
			writeAt: func(f *os.File, b []byte, at int64) (int, error) {
				if at == 0 { // a head, which is never torn
					p.tick()
					defer p.tick()
					return f.WriteAt(b, at)
				}
				return p.piece(b, func(b []byte) (int, error) { return f.WriteAt(b, at) })
			},
			rename: func(from, to string) error {
				p.tick()
				defer p.tick()
				return os.Rename(from, to)
			},
			sync: func(*os.File) error { return nil }, syncDir: func(string) error { return nil }, atOnce: 1,
		}
	}
	s, err := Open(p.path, p.state, &o)
	must(t, err)
	p.set = s
}

// run writes chunks, of which so many have one commit, until so many are committed.
func (p *party) run(t *testing.T, ticks, together, until int) (done bool) {
	t.Helper()
	p.ticks = ticks
	if p.set == nil {
		p.open(t)
	}
	defer func() {
		v := recover()
		if _, ok := v.(killed); v != nil && !ok {
			panic(v)
		}
		if v != nil {
			p.ticks = -1
			must(t, p.set.Close())
			p.set = nil
		}
	}()
	for i := p.position; i < until*p.chunk; {
		for range together {
			for j := range p.chunk {
				must(t, extend(p.set, "", 0, p.lines[i+j]))
				if j == 1 {
					must(t, p.set.Write()) // in the middle of a chunk
				}
			}
			p.set.Cut()
			if i += p.chunk; i == until*p.chunk {
				break
			}
		}
		state, err := p.set.Sync()
		must(t, err)
		p.tick()
		p.position, p.state = i, state
		p.tick()
	}
	return true
}

// sharedLines are those of all files of a path, the rotated ones first.
func sharedLines(t *testing.T, path string) (lines []string) {
	t.Helper()
	all, err := rotatedOf(path)
	must(t, err)
	for _, r := range slices.Backward(all) {
		lines = append(lines, strings.Split(string(read(t, r.path)), "\n")...)
	}
	return append(lines, strings.Split(string(read(t, path)), "\n")...)
}

var wholeLine = regexp.MustCompile(`^\{[^{}]*\}$`)

// TestSharedKills kills a process that shares a file at any tick, and then its heir, while another
// one writes the file: before, in between and after. All of them write the same lines, but with
// SharedAppend, where lines have to be distinct for the heir to look for them.
func TestSharedKills(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"lock", Options{Shared: SharedLock}},
		{"lock, rotated", Options{Shared: SharedLock, Rotation: Rotation{Size: 60}}},
		{"append", Options{Shared: SharedAppend}},
		{"append, distinct", Options{Shared: SharedAppend, Distinct: "{"}},
		{"append, rotated", Options{Shared: SharedAppend, Distinct: "{", Rotation: Rotation{Size: 60}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			haveSharing(t, tt.o.Shared)
			twice, torn := 0, int64(0)
			step := 3
			if needs.Long() {
				step = 1
			}
			for ticks := 0; ; ticks += step {
				path := filepath.Join(t.TempDir(), "x.jsonl")
				party := func(name string) *party {
					p := &party{o: tt.o, path: path, chunk: 3}
					for i := range 12 {
						p.lines = append(p.lines, fmt.Sprintf("{%s%d %s}\n", name, i, strings.Repeat("x", i%4)))
					}
					return p
				}
				other, victim := party("o"), party("v")
				if tt.o.Shared == SharedLock {
					other = party("v")
				}
				other.run(t, -1, 1, 1)
				done := victim.run(t, ticks, 2, 4)
				other.run(t, -1, 1, 2)
				if !done {
					if victim.run(t, ticks/2, 1, 4); victim.set == nil {
						other.run(t, -1, 1, 3)
						victim.run(t, -1, 1, 4)
					}
				}
				other.run(t, -1, 2, 4)
				torn += other.set.Torn() + victim.set.Torn()
				must(t, other.set.Close())
				must(t, victim.set.Close())

				if all, err := filepath.Glob(path[:len(path)-6] + "*.jsonl"); tt.o.Shared == SharedLock && tt.o.Rotation.on() {
					must(t, err)
					for _, path := range all {
						if n := len(read(t, path)); int64(n) > tt.o.Rotation.Size {
							t.Fatalf("killed at %d: %s has %d bytes", ticks, path, n)
						}
					}
				}
				seen := map[string]int{}
				for _, line := range sharedLines(t, path) {
					if wholeLine.MatchString(line) {
						seen[line+"\n"]++
					} else if line != "" && tt.o.Shared == SharedLock {
						t.Fatalf("killed at %d: %q is torn", ticks, line)
					}
				}
				want := map[string]int{}
				for _, line := range slices.Concat(other.lines, victim.lines) {
					want[line]++
				}
				for line, n := range want {
					if seen[line] < n || seen[line] > n && tt.o.Shared == SharedLock {
						t.Fatalf("killed at %d: %q is there %d times, want %d:\n%q", ticks, line, seen[line], n, sharedLines(t, path))
					}
					twice += seen[line] - n
				}
				if len(seen) > len(want) {
					t.Fatalf("killed at %d: %q", ticks, seen)
				}
				if done {
					t.Logf("killed at %d ticks: %d lines again, %d fragments", ticks, twice, torn)
					if tt.o.Shared == SharedAppend && torn == 0 {
						t.Error("no write was torn")
					}
					return
				}
			}
		})
	}
}

// TestSharedGlued: a process is killed within its write right before another writes. The first line
// of that one's batch is not lost behind the fragment.
func TestSharedGlued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	once := true
	k := &kernel{write: func(f *os.File, b []byte) (int, error) {
		if once {
			once = false
			appendTo(t, path, "{fragm")
		}
		return f.Write(b)
	}, sync: (*os.File).Sync, syncDir: syncDir, atOnce: 1}
	s := openSet(t, path, nil, &Options{Shared: SharedAppend, Distinct: "{", kernel: k})
	add(t, s, "", "{a}\n")
	add(t, s, "", "{b}\n")
	_, err := s.Sync()
	must(t, err)
	if got, want := string(read(t, path)), "{fragm{a}\n{b}\n{a}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if n := s.Torn(); n != 1 {
		t.Errorf("%d fragments", n)
	}
	appendTo(t, path, "{again")
	add(t, s, "", "{c}\n")
	_, err = s.Sync()
	must(t, err)
	if got, want := string(read(t, path)), "{fragm{a}\n{b}\n{a}\n{again\n{c}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSharedGluedFull: the same, and the disk is full before the batch is whole. Its first line is
// not taken for written.
func TestSharedGluedFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	once, full := true, errors.New("no room")
	k := &kernel{write: func(f *os.File, b []byte) (int, error) {
		if !once {
			return f.Write(b)
		}
		once = false
		appendTo(t, path, "{fragm")
		n, err := f.Write(b[:5])
		return n, errors.Join(err, full)
	}, sync: (*os.File).Sync, syncDir: syncDir, atOnce: 1}
	s := openSet(t, path, nil, &Options{Shared: SharedAppend, kernel: k})
	add(t, s, "", "{a}\n")
	add(t, s, "", "{b}\n")
	if _, err := s.Sync(); !errors.Is(err, full) {
		t.Fatal(err)
	}
	_, err := s.Sync()
	must(t, err)
	if got, want := string(read(t, path)), "{fragm{a}\n{\n{a}\n{b}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSharedFull: a disk that is full in the middle of a write costs no line, and with a lock
// brings none twice. Others wait until the batch is whole.
func TestSharedFull(t *testing.T) {
	for _, how := range []Sharing{SharedAppend, SharedLock} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			haveSharing(t, how)
			path := filepath.Join(t.TempDir(), "x")
			room := 7
			full := errors.New("no room")
			k := &kernel{write: func(f *os.File, b []byte) (int, error) {
				n, err := f.Write(b[:min(len(b), room)])
				if room -= n; err == nil && n < len(b) {
					err = full
				}
				return n, err
			}, sync: (*os.File).Sync, syncDir: syncDir, atOnce: 1}
			a := openSet(t, path, nil, &Options{Shared: how, kernel: k})
			b := openSet(t, path, nil, &Options{Shared: how, kernel: k})
			add(t, a, "", "{a1}\n")
			add(t, a, "", "{a2}\n")
			if _, err := a.Sync(); !errors.Is(err, full) {
				t.Fatal(err)
			}
			add(t, b, "", "{b}\n")
			if _, err := b.Sync(); !errors.Is(err, full) {
				t.Fatal(err)
			}
			room = 1 << 20
			for _, s := range []*Set{b, a} {
				_, err := s.Sync()
				must(t, err)
			}
			want := "{a1}\n{a2}\n{b}\n"
			if how == SharedAppend {
				want = "{a1}\n{a\n{b}\n{a2}\n"
			}
			if got := string(read(t, path)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestSharedLatch: a latch that somebody removed, cut or overwrote costs no line.
func TestSharedLatch(t *testing.T) {
	haveSharing(t, SharedLock)
	for name, harm := range map[string]func(t *testing.T, path string){
		"removed":     func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"cut":         func(t *testing.T, path string) { must(t, os.Truncate(path, 100)) },
		"overwritten": func(t *testing.T, path string) { overwrite(t, path, []byte(strings.Repeat("x", 5000))) },
		"replaced":    func(t *testing.T, path string) { must(t, os.Remove(path)); overwrite(t, path, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			a := openSet(t, path, nil, &Options{Shared: SharedLock})
			b := openSet(t, path, nil, &Options{Shared: SharedLock})
			for i := range 3 {
				for _, s := range []*Set{a, b} {
					add(t, s, "", fmt.Sprintf("{%d}\n", i))
					_, err := s.Sync()
					must(t, err)
				}
				harm(t, path+latchEnding)
			}
			if got, want := string(read(t, path)), "{0}\n{0}\n{1}\n{1}\n{2}\n{2}\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestLatchVoid: of a batch that a latch no longer knows it does not say that it is there.
func TestLatchVoid(t *testing.T) {
	haveSharing(t, SharedLock)
	l, err := openLatch(filepath.Join(t.TempDir(), "x"), &Options{FileMode: 0o600, kernel: &kernel{writeAt: (*os.File).WriteAt}})
	must(t, err)
	defer l.file.Close()
	lock := func() {
		ok, err := l.lock()
		if must(t, err); !ok {
			t.Fatal("it is not at its path")
		}
	}
	lock()
	must(t, l.take())
	must(t, l.make([]byte("{x}\n"), 1, 0))
	id := l.head.id
	for range voids + 1 { // of which the first is forgotten
		must(t, l.take())
	}
	must(t, l.take())
	must(t, l.make([]byte("{y}\n"), 1, 0))
	last := l.head.number
	l.unlock()
	lock()
	for number := range last + 2 {
		if have, want := l.has(place{id, number}), number == last; have != want {
			t.Errorf("number %d of %d: %v", number, last, have)
		}
	}
	if l.has(place{id + 1, last}) {
		t.Error("another latch's batch is there")
	}
}

// TestLatchFull: a disk that has no room for a batch in the latch costs no numbers, of which it
// remembers a few.
func TestLatchFull(t *testing.T) {
	haveSharing(t, SharedLock)
	path := filepath.Join(t.TempDir(), "x")
	full := errors.New("no room")
	left := 0
	k := &kernel{writeAt: func(f *os.File, b []byte, at int64) (int, error) {
		if at > 0 && left > 0 {
			left--
			return 0, full
		}
		return f.WriteAt(b, at)
	}, sync: (*os.File).Sync, syncDir: syncDir, atOnce: 1}
	s := openSet(t, path, nil, &Options{Shared: SharedLock, kernel: k})
	for i := range 2 {
		add(t, s, "", fmt.Sprintf("{%d}\n", i))
		for range left {
			if _, err := s.Sync(); !errors.Is(err, full) {
				t.Fatal(err)
			}
		}
		_, err := s.Sync()
		must(t, err)
		left = voids + 1
	}
	if h, ok := parseLatch(read(t, path+latchEnding)); !ok || h.number != 2 || len(h.void) > 0 {
		t.Errorf("%+v", h)
	}
}

// TestLatchRestart: after a restart of the machine a latch has another id, since its numbers may
// have been set back by a power cut. What lies in it is completed all the same.
func TestLatchRestart(t *testing.T) {
	haveSharing(t, SharedLock)
	path := filepath.Join(t.TempDir(), "x")
	p := &party{o: Options{Shared: SharedLock}, path: path, chunk: 1, lines: []string{"{a}\n", "{b}\n"}}
	p.run(t, -1, 1, 1)
	if p.run(t, killedWithin, 1, 2) {
		t.Fatal("it was not killed")
	}
	text := read(t, path+latchEnding)
	before, _ := parseLatch(text)
	then := before
	then.boot = 1
	overwrite(t, path+latchEnding, append(then.append(nil), text[latchLen:]...))
	s := openSet(t, path, nil, &Options{Shared: SharedLock})
	add(t, s, "", "{c}\n")
	_, err := s.Sync()
	must(t, err)
	h, ok := parseLatch(read(t, path+latchEnding))
	l := latch{head: h}
	if !ok || bootID() != 0 && (h.boot != bootID() || l.has(place{before.id, before.number})) {
		t.Errorf("%+v, before %+v", h, before)
	}
	if got, want := string(read(t, path)), "{a}\n{b}\n{c}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLatchesOpen: no more latches are open than files, and those that are not used are closed.
func TestLatchesOpen(t *testing.T) {
	haveSharing(t, SharedLock)
	s := openSet(t, filepath.Join(t.TempDir(), "{tag}"), nil, &Options{Shared: SharedLock, MaxOpen: 2})
	open := func() (n int) {
		for _, f := range s.index.order {
			if f.latch != nil {
				n++
			}
		}
		return n
	}
	for _, tag := range []string{"a", "b", "c", "d"} {
		add(t, s, tag, "{}\n")
	}
	must(t, s.Write())
	if n := open(); n > 2 {
		t.Errorf("%d latches are open", n)
	}
	for f := s.handles.newest; f != nil; f = f.older {
		f.used = time.Now().Add(-2 * s.o.Idle)
	}
	must(t, s.Write())
	if n := open(); n > 0 {
		t.Errorf("%d latches are open that nobody uses", n)
	}
}

// TestSharedMend: what lies in a latch comes into the file, whatever somebody else did to it.
func TestSharedMend(t *testing.T) {
	haveSharing(t, SharedLock)
	unlessRoot := "{b}\n" // which may write all files
	if os.Geteuid() == 0 {
		unlessRoot = ""
	}
	for name, tt := range map[string]struct {
		harm func(t *testing.T, path string)
		want string
	}{
		"nothing": {func(*testing.T, string) {}, "{a}\n{b}\n{c}\n"},
		"cut":     {func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, "{b}\n{c}\n"},
		"renamed": {func(t *testing.T, path string) { must(t, os.Rename(path, path+".1")) }, "{c}\n"},
		"removed": {func(t *testing.T, path string) { must(t, os.Remove(path)) }, "{b}\n{c}\n"},
		"another": {func(t *testing.T, path string) { must(t, os.Rename(path, path[:len(path)-6]+"-errors.jsonl")) }, "{b}\n{c}\n"},
		"packed":  {func(t *testing.T, path string) { must(t, os.Rename(path, path+".1.gz")) }, "{b}\n{c}\n"},

		"renamed for another": {func(t *testing.T, path string) {
			must(t, os.Chmod(path, 0))
			must(t, os.Rename(path, path+".1"))
		}, unlessRoot + "{c}\n"},
		"cut in a line":        {func(t *testing.T, path string) { must(t, os.Truncate(path, 2)) }, "{a\n{b}\n{c}\n"},
		"followed by another":  {stranger(6, "{s}\n"), "{a}\n{b{s}\n{b}\n{c}\n"},
		"another in its place": {stranger(4, "{s}\n{s}\n"), "{a}\n{s}\n{s}\n{b}\n{c}\n"},
		"another's part":       {stranger(4, "{s"), "{a}\n{s\n{b}\n{c}\n"},
		"another before it":    {stranger(4, "{s}\n{b}\n"), "{a}\n{s}\n{b}\n{c}\n"},
		"whole, and another":   {stranger(6, "}\n{s}\n"), "{a}\n{b}\n{s}\n{c}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.jsonl")
			p := &party{o: Options{Shared: SharedLock}, path: path, chunk: 1, lines: []string{"{a}\n", "{b}\n"}}
			p.run(t, -1, 1, 1)
			if p.run(t, killedWithin, 1, 2) {
				t.Fatal("it was not killed")
			}
			if got := string(read(t, path)); got != "{a}\n{b" {
				t.Fatalf("%q", got)
			}
			tt.harm(t, path)
			s := openSet(t, path, nil, &Options{Shared: SharedLock})
			add(t, s, "", "{c}\n")
			_, err := s.Sync()
			must(t, err)
			if got := string(read(t, path)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if name == "renamed" {
				if got := string(read(t, path+".1")); got != "{a}\n{b}\n" {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

// TestSharedDamaged: where the batch that a process was killed at cannot be read, or is larger than
// any, its lines come again.
func TestSharedDamaged(t *testing.T) {
	haveSharing(t, SharedLock)
	for name, harm := range map[string]func(t *testing.T, latch string){
		"cut":         func(t *testing.T, latch string) { must(t, os.Truncate(latch, latchBatch)) },
		"overwritten": func(t *testing.T, latch string) { must(t, os.Truncate(latch, latchBatch)); appendTo(t, latch, "none") },
		"huge": func(t *testing.T, latch string) {
			h, ok := parseLatch(read(t, latch))
			if !ok {
				t.Fatal("no head")
			}
			h.length = 1 << 40
			overwrite(t, latch, h.append(nil))
			if err := os.Truncate(latch, latchBatch+1<<40); err != nil {
				t.Log(err) // then it is cut
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x")
			p := &party{o: Options{Shared: SharedLock}, path: path, chunk: 1, lines: []string{"{a}\n", "{b}\n"}}
			p.run(t, -1, 1, 1)
			if p.run(t, killedWithin, 1, 2) {
				t.Fatal("it was not killed")
			}
			harm(t, path+latchEnding)
			s := openSet(t, path, nil, &Options{Shared: SharedLock})
			add(t, s, "", "{c}\n")
			_, err := s.Sync()
			must(t, err)
			p.run(t, -1, 1, 2)
			must(t, p.set.Close())
			if got, want := string(read(t, path)), "{a}\n{b\n{c}\n{b}\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// killedWithin is when a process is killed that writes a line under the lock: the batch in
// the latch, a head taken, a state, a head with the batch, and two bytes of the line.
const killedWithin = 4 + 2 + 2 + 2 + 2

// stranger writes a file from a place on that a killed process has written to, without the lock.
func stranger(at int64, text string) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		must(t, os.Truncate(path, at))
		appendTo(t, path, text)
	}
}

// TestSharedHeld: what one process rotates and compresses stays while another writes it that does
// not rotate.
func TestSharedHeld(t *testing.T) {
	for _, how := range []Sharing{SharedAppend, SharedLock} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			haveSharing(t, how)
			path := filepath.Join(t.TempDir(), "x")
			s := openSet(t, path, nil, &Options{Shared: how})
			add(t, s, "", "{a}\n")
			_, err := s.Sync()
			must(t, err)
			f, err := os.Open(path)
			must(t, err)
			defer f.Close()
			if lockFile(f, true) && CanLock {
				t.Error("a keeper gets the lock of a file that is written")
			}
		})
	}
}

// TestSharedMidnight: a process that began to wait for the file before its time was over does not
// rotate the one that another has begun meanwhile.
func TestSharedMidnight(t *testing.T) {
	for _, how := range []Sharing{SharedAppend, SharedLock} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			haveSharing(t, how)
			path := filepath.Join(t.TempDir(), "x")
			o := Options{Shared: how, Rotation: Rotation{Every: 1000 * time.Hour}}
			a, b := openSet(t, path, nil, &o), openSet(t, path, nil, &o)
			add(t, a, "", "{a}\n")
			_, err := a.Sync()
			must(t, err)
			add(t, b, "", "{b}\n")
			x := b.sharer
			x.handles.now = time.Now().Add(-2 * o.Rotation.Every)
			for _, f := range x.waiting.files {
				must(t, x.writeFile(f, true))
			}
			if got, want := string(read(t, path)), "{a}\n{b}\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestBatchInBound: a batch is not looked for without end.
func TestBatchInBound(t *testing.T) {
	first := []byte("{a}\n")
	read := readerAt(func(b []byte, at int64) (int, error) {
		if at > mostSought+3<<20 {
			t.Fatalf("it reads at %d", at)
		}
		clear(b)
		for i, c := range []byte("\n{a}\n") {
			if place := mostSought + 1<<20 + int64(i) - at; 0 <= place && place < int64(len(b)) {
				b[place] = c
			}
		}
		return len(b), nil
	})
	for from, want := range map[int64]bool{0: false, 2 << 20: true} {
		if got := batchIn(read, from, first, []stretch{stretchOf(first)}); got != want {
			t.Errorf("from %d: %v", from, got)
		}
	}
}

type readerAt func(b []byte, at int64) (int, error)

func (r readerAt) ReadAt(b []byte, at int64) (int, error) { return r(b, at) }

// FuzzParseShared reads states of shared files.
func FuzzParseShared(f *testing.F) {
	f.Add(appendShared(nil, &sharedState{number: 7}))
	f.Add(appendShared(nil, &sharedState{3, true, []namedLot{
		{"/a/b", &lot{stretches: []stretch{{3, 5}, {9, 1}}, doubt: 1, place: place{1, 2}}}, {"/a/c", &lot{}},
	}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseShared(b)
		if err != nil || len(b) == 0 {
			return
		}
		again, err := parseShared(appendShared(nil, &s))
		if err != nil || again.number != s.number || len(again.lots) != len(s.lots) {
			t.Fatalf("%x: %+v, %v", b, again, err)
		}
		for _, x := range s.lots {
			if x.lot.doubt > len(x.lot.stretches) {
				t.Fatalf("%x: %d in doubt of %d", b, x.lot.doubt, len(x.lot.stretches))
			}
		}
	})
}

// FuzzLatch lets a latch be any bytes: lines are written all the same.
func FuzzLatch(f *testing.F) {
	head := func(h latchHead) []byte { return append(h.append(nil), make([]byte, latchBatch-latchLen)...) }
	f.Add([]byte{})
	f.Add(head(latchHead{id: 1, number: 2, phase: written, void: []uint64{1}}))
	f.Add(append(head(latchHead{id: 1, number: 2, phase: made, length: 4, sum: stretchOf([]byte("{x}\n")).sum}), "{x}\n"...))
	f.Add(head(latchHead{id: 1, phase: made, length: 1 << 60, offset: 1 << 63}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		haveSharing(t, SharedLock)
		path := filepath.Join(dir, "x")
		overwrite(t, path, []byte("{old}\n"))
		overwrite(t, path+latchEnding, b)
		s, err := Open(path, nil, &Options{Shared: SharedLock, NoSync: true})
		must(t, err)
		defer s.Close()
		add(t, s, "", "{new}\n")
		_, err = s.Sync()
		must(t, err)
		if got := string(read(t, path)); !strings.HasPrefix(got, "{old}\n") || !strings.HasSuffix(got, "{new}\n") {
			t.Fatalf("%q", got)
		}
	})
}
