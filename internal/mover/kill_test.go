// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mover

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/ring"
)

const busy = 4 // goroutines of a child that log at full speed

// A ledger is a destination that outlives its processes: a file to which each delivered chunk is
// written before its done.
type ledger struct {
	f       *os.File
	rnd     *rand.Rand // nil: never down
	mu      sync.Mutex
	down    bool // now
	held    []func()
	due     []func()
	landing bool
	stalled bool // down for ever
	n       int
}

func (l *ledger) Submit(c *forward.Chunk, done func(output.Result)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.rnd != nil && !l.stalled && l.n%(3+l.rnd.IntN(20)) == 0 {
		l.down = !l.down
	}
	land := func() {
		b := binary.BigEndian.AppendUint32(nil, 0)
		b = append(c.AppendHead(b), c.Entries...)
		b = c.AppendTail(b)
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
		if _, err := l.f.Write(b); err != nil {
			panic(err)
		}
		done(output.Result{})
	}
	l.held = append(l.held, land)
	if !l.down {
		l.let()
	}
}

// let lets go of what is held, in order. With mu held.
func (l *ledger) let() {
	l.due = append(l.due, l.held...)
	l.held = nil
	if l.landing {
		return
	}
	l.landing = true
	go func() {
		for {
			l.mu.Lock()
			due := l.due
			l.due = nil
			l.landing = len(due) > 0
			l.mu.Unlock()
			if len(due) == 0 {
				return
			}
			for _, land := range due {
				land()
			}
		}
	}()
}

func (l *ledger) Flush(context.Context) error { return nil }

func (l *ledger) Close(context.Context) error { return nil }

// TestKillChild is not a test but the process that TestKill kills: busy goroutines log as fast as
// they can, each counting in a page that outlives the process.
func TestKillChild(t *testing.T) {
	dir := os.Getenv("SPILLWAY_MOVER_CHILD")
	if dir == "" {
		needs.Skip(t, "started by TestKill")
	}
	conf := strings.Split(os.Getenv("SPILLWAY_MOVER_CONF"), ",") // round, seed, point, count, mode, ring
	num := func(i int) int {
		n, err := strconv.Atoi(conf[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	round, point, count := num(0), conf[2], num(3)
	f, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.OpenFile(filepath.Join(dir, "page"), os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(page.Fd()), 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{f: f, rnd: rand.New(rand.NewPCG(uint64(num(1)), 1))}
	l.down = l.rnd.IntN(3) == 0
	small, surely := conf[5] != "", conf[5] == "surely"
	l.stalled = surely || small && l.rnd.IntN(3) > 0
	l.down = l.down || l.stalled
	before := surely || small && l.rnd.IntN(4) > 0
	var passed atomic.Int64
	aside := make(chan struct{})
	var once sync.Once
	c := killConf(dir, l)
	c.Overflow, c.MaxWait = Block, time.Hour
	c.fault = func(p string) {
		if p == "put aside" {
			once.Do(func() { close(aside) })
		}
		if p == point && passed.Add(1) == int64(count) {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if small {
		c.RingSize, c.BatchBytes, c.Window = 4<<20, 64<<10, MaxWindow
	}
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if small { // no memory is left: the ring stays as it is, or grows a little
		filled := make(chan struct{})
		go func() {
			fill(t, filepath.Dir(c.Shm))
			close(filled)
		}()
		if before {
			<-filled
		}
	}
	for g := range busy {
		id := uint32(round*busy + g)
		cell := (*atomic.Uint32)(unsafe.Pointer(&mem[4*id]))
		go func() {
			var h ring.Hint
			var b []byte
			for n := uint32(0); n < 1<<20; n++ {
				b = event{"t" + strconv.Itoa(int(id+n/1000)%3), id, n}.payload(b[:0], 20+int(n%300))
				if err := m.Append(context.Background(), &h, ring.Now, false, b); err != nil {
					return
				}
				cell.Store(n + 1)
			}
		}()
	}
	if surely {
		<-aside // for the ring is so small that all of it is with the destination
	}
	l.mu.Lock()
	end := time.After(time.Duration(20+l.rnd.IntN(250)) * time.Millisecond)
	l.mu.Unlock()
	tick := time.NewTicker(5 * time.Millisecond)
	for {
		select {
		case <-tick.C:
			l.mu.Lock()
			if l.rnd.IntN(8) == 0 && !l.stalled {
				l.down = false
				l.let()
			}
			l.mu.Unlock()
		case <-end:
			if conf[4] == "leave" {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
				defer cancel()
				_ = m.Close(ctx) // what it leaves is counted by the parent
				return
			}
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

func killConf(dir string, d output.Output) *Config {
	return &Config{
		Name: "kill", Destination: d, RingSize: 1 << 20, Shm: os.Getenv("SPILLWAY_MOVER_SHM"),
		Dir:           filepath.Join(dir, "spills"),
		FlushInterval: time.Millisecond, Diagnostics: func(err error) { fmt.Fprintln(os.Stderr, err) },
	}
}

// readLedger returns what was delivered, without repeats: chunks of an id that came before, which
// have to have the same bytes. A chunk at the end that was being written when the process died is
// cut off.
func readLedger(t *testing.T, path string) (took []sent, repeats int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string][]byte{}
	at := 0
	for len(all)-at >= 4 {
		n := int(binary.BigEndian.Uint32(all[at:]))
		if len(all)-at-4 < n {
			break
		}
		c, err := forward.ParseChunk(all[at+4 : at+4+n])
		if err != nil {
			t.Fatalf("ledger at %d: %v", at, err)
		}
		at += 4 + n
		if before, ok := seen[string(c.ID)]; ok {
			repeats++
			if !bytes.Equal(before, c.Entries) {
				t.Fatalf("chunk %s came again with other entries: %d bytes, before %d", c.ID, len(c.Entries),
					len(before))
			}
			continue
		}
		seen[string(c.ID)] = c.Entries
		took = append(took, read(c))
	}
	if err := f.Truncate(int64(at)); err != nil {
		t.Fatal(err)
	}
	return took, repeats
}

// A process with busy goroutines is killed at a random moment, or between two steps of the mover.
// The next one, which will be killed as well, and at last one that lives, deliver all that was
// accepted, once, in order, repeats with equal ids and bytes apart.
func TestKill(t *testing.T) {
	(&killRun{rounds: needs.Rounds(t, "SPILLWAY_KILLS", 24, 24), shm: shmDir, points: []string{
		"", "", "marked", "cut", "delivered", "cleared", "appended", "flushed", "unmarked", "",
	}}).run(t)
}

// TestKillAside is TestKill with rings that others left no memory for, so that all of them may be
// with a destination, which mostly does not answer: then chunks are put aside.
func TestKillAside(t *testing.T) {
	shm := func(t *testing.T) string { return filepath.Join(smallShm(t, "24m"), "rings") }
	k := &killRun{rounds: needs.Rounds(t, "SPILLWAY_KILLS", 8, 60), shm: shm, small: true, points: []string{
		"", "put aside", "put aside", "spilling", "appended", "flushed", "unmarked", "marked", "cut", "cleared",
	}}
	k.run(t)
	if k.aside == 0 {
		t.Error("nothing was put aside")
	}
}

// A killRun is what TestKill does.
type killRun struct {
	rounds int
	shm    func(t *testing.T) string
	small  bool     // the rings' file system is full
	points []string // between two steps of the mover; empty: at any time
	aside  int      // spills of chunks put aside that were seen
}

func (k *killRun) run(t *testing.T) {
	needs.Time(t, "starts processes")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	repeated := 0
	for done := 0; done < k.rounds; {
		dir := t.TempDir()
		mem := k.shm(t)
		t.Setenv("SPILLWAY_MOVER_SHM", mem)
		if err := os.WriteFile(filepath.Join(dir, "page"), make([]byte, 1<<16), 0o600); err != nil {
			t.Fatal(err)
		}
		lives := 1 + rnd.IntN(4)
		var history []string
		for round := range lives {
			point, mode := k.points[rnd.IntN(len(k.points))], "kill"
			ring := ""
			if k.small {
				ring = "small"
			}
			if k.small && done == 0 {
				point, ring = "", "surely"
			}
			if rnd.IntN(6) == 0 {
				mode = "leave"
			}
			conf := fmt.Sprintf("%d,%d,%s,%d,%s,%s", round, rnd.Uint64N(1<<30), point, 1+rnd.IntN(12), mode, ring)
			history = append(history, conf)
			cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
			cmd.Env = append(os.Environ(), "SPILLWAY_MOVER_CHILD="+dir, "SPILLWAY_MOVER_CONF="+conf)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
				t.Fatalf("%q: %v\n%s", history, err, out)
			}
			if len(out) > 0 && testing.Verbose() {
				t.Logf("%q:\n%s", conf, out)
			}
			k.lookAside(t, filepath.Join(dir, "spills"))
			_ = os.Remove(filepath.Join(filepath.Dir(mem), "filler")) // there is none where memory is left
			before, _ := readLedger(t, filepath.Join(dir, "ledger"))
			t.Logf("%s: %d chunks", conf, len(before))
			done++
		}
		f, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Open(killConf(dir, &ledger{f: f}))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(within(t, patience)); err != nil {
			t.Fatalf("%q: %v", history, err)
		}
		if s := m.Stats(); s.Accepted != s.Delivered || s.Accepted != s.Adopted.Events {
			t.Errorf("%q: %+v", history, s)
		}
		took, repeats := readLedger(t, filepath.Join(dir, "ledger"))
		repeated += repeats
		page, err := os.ReadFile(filepath.Join(dir, "page"))
		if err != nil {
			t.Fatal(err)
		}
		next, total := map[uint32]uint32{}, map[uint32]uint32{}
		for _, s := range took {
			for _, e := range s.events {
				// Events of one tag keep their order; each goroutine changes its tag every
				// thousand.
				if e.n%1000 != next[e.g<<16|e.n/1000] {
					for i, s := range took {
						a, b, n := uint32(1<<31), uint32(0), 0
						for _, x := range s.events {
							if x.g == e.g {
								a, b, n = min(a, x.n), max(b, x.n), n+1
							}
						}
						for _, x := range s.events {
							if x.g == e.g && x.n == e.n/1000*1000+next[e.g<<16|e.n/1000] {
								t.Logf("it is in %d", i)
							}
						}
						if n > 0 {
							t.Logf("%d %s %s: %d events, of %d %d: %d…%d", i, s.id, s.events[0].tag, len(s.events), e.g,
								n, a, b)
						}
					}
					t.Fatalf("%q: of goroutine %d came %d, not %d", history, e.g, e.n,
						e.n/1000*1000+next[e.g<<16|e.n/1000])
				}
				next[e.g<<16|e.n/1000]++
				total[e.g]++
			}
		}
		for g := range uint32(lives * busy) {
			counted := binary.NativeEndian.Uint32(page[4*g:])
			if n := total[g]; n != counted && n != counted+1 {
				t.Errorf("%q: of goroutine %d came %d, accepted were %d", history, g, n, counted)
			}
		}
		if t.Failed() {
			return
		}
		for _, where := range []string{mem, filepath.Join(dir, "spills")} {
			for _, name := range entriesOf(t, where) {
				if _, err := os.Stat(filepath.Join(where, name, "owner.json")); err == nil || where == mem {
					t.Errorf("%q: left %q", history, name)
				}
			}
		}
		_ = f.Close() // nothing more is written
	}
	t.Logf("%d lives, %d repeated chunks, %d spills of what was put aside", k.rounds, repeated, k.aside)
}

// lookAside counts the spills that have not the name of their ring.
func (k *killRun) lookAside(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*", "owner.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(filepath.Base(filepath.Dir(name)))) {
			k.aside++
		}
	}
}
