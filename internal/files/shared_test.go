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

// A party is a process that writes a shared file, and its successors.
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

// TestSharedKills kills a process that shares a file at any tick, and then its successor, while
// another one writes the file: before, in between and after. All of them write the same lines, but
// with SharedAppend, where lines have to be distinct for the successor to look for them.
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

				if all, err := filepath.Glob(path[:len(path)-6] + "*.jsonl"); tt.o.Shared == SharedLock &&
					tt.o.Rotation.on() {
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
						t.Fatalf("killed at %d: %q is there %d times, want %d:\n%q", ticks, line, seen[line], n,
							sharedLines(t, path))
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
		if at > maxSought+3<<20 {
			t.Fatalf("it reads at %d", at)
		}
		clear(b)
		for i, c := range []byte("\n{a}\n") {
			if place := maxSought + 1<<20 + int64(i) - at; 0 <= place && place < int64(len(b)) {
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
