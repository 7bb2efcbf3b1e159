// SPDX-License-Identifier: Apache-2.0

//go:build linux

package mover

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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

// A gate stands before a destination, and lets nothing through while it is shut.
type gate struct {
	output.Output
	mu   sync.Mutex
	shut bool
	held []func()
}

func (g *gate) Submit(c *forward.Chunk, done func(output.Result)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		g.held = append(g.held, func() { g.Output.Submit(c, done) })
		return
	}
	g.Output.Submit(c, done)
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut = shut; !shut {
		for _, submit := range g.held {
			submit()
		}
		g.held = nil
	}
}

func (g *gate) Resume(save func([]byte) error, states ...[]byte) error {
	return g.Output.(output.Resumer).Resume(save, states...)
}

func (g *gate) Close(ctx context.Context) error {
	err := g.Output.Close(ctx)
	g.set(false) // what was held is told that it is closed
	return err
}

// A killPlan says what a process does until it is killed.
type killPlan struct {
	Dir, Path  string
	MaxDisk    int64
	Round      int
	Seed       uint64
	Tags       int
	Point      string // between two steps of the mover
	Count      int    // the step's so manieth time
	Leave      bool   // it closes in place of being killed
	NeverShut  bool
	Goroutines int
}

func (p *killPlan) open(t *testing.T, fault func(string)) (*Mover, *gate) {
	t.Helper()
	d, err := output.NewFile(&output.FileConfig{Path: p.Path, Trip: output.Trip{Report: func(err error) {
		fmt.Fprintln(os.Stderr, err)
		t.Error(err)
	}}})
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Output: d}
	c := killConf(p.Dir, g)
	c.Overflow, c.MaxWait, c.Ordered, c.MaxDisk, c.fault = Block, time.Hour, true, p.MaxDisk, fault
	m, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m, g
}

// TestKillOrderedChild is not a test but the process that TestKillOrdered kills.
func TestKillOrderedChild(t *testing.T) {
	text := os.Getenv("SPILLWAY_MOVER_PLAN")
	if text == "" {
		needs.Skip(t, "started by TestKillOrdered")
	}
	var p killPlan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	page, err := os.OpenFile(filepath.Join(p.Dir, "page"), os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := syscall.Mmap(int(page.Fd()), 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int64
	m, g := p.open(t, func(point string) {
		if point == p.Point && passed.Add(1) == int64(p.Count) {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	rnd := rand.New(rand.NewPCG(p.Seed, 1))
	g.set(!p.NeverShut && rnd.IntN(3) == 0)
	for i := range p.Goroutines {
		id := uint32(p.Round*p.Goroutines + i)
		cell := (*atomic.Uint32)(unsafe.Pointer(&mem[4*id]))
		go func() {
			tags := rand.New(rand.NewPCG(p.Seed, uint64(id)))
			var h ring.Hint
			var b []byte
			for n := uint32(0); n < 1<<20; n++ {
				b = event{"t" + strconv.Itoa(tags.IntN(p.Tags)), id, n}.payload(b[:0], int(n%20))
				if err := m.Append(context.Background(), &h, ring.Now, false, b); err != nil {
					return
				}
				cell.Store(n + 1)
			}
		}()
	}
	end := time.After(time.Duration(20+rnd.IntN(250)) * time.Millisecond)
	tick := time.NewTicker(5 * time.Millisecond)
	for {
		select {
		case <-tick.C:
			if !p.NeverShut && rnd.IntN(8) == 0 {
				g.set(rnd.IntN(2) == 0)
			}
		case <-end:
			if p.Leave {
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

// A process whose goroutines change their tag with each event, at random, is killed at a random
// moment, or between two steps of the mover, and so is its successor. At last each line is in the
// file once, and those of a goroutine are in the order of its calls, whatever their tags, with a
// spill on the way that may be full.
func TestKillOrdered(t *testing.T) {
	needs.Time(t, "starts processes")
	lives := needs.Rounds(t, "SPILLWAY_KILLS", 20, 40)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	points := []string{
		"", "", "", "marked", "cut", "stored", "delivered", "cleared", "appended", "flushed", "divided",
		"unmarked",
	}
	for done := 0; done < lives; {
		dir := t.TempDir()
		mem := shmDir(t)
		t.Setenv("SPILLWAY_MOVER_SHM", mem)
		if err := os.WriteFile(filepath.Join(dir, "page"), make([]byte, 1<<16), 0o600); err != nil {
			t.Fatal(err)
		}
		p := killPlan{Dir: dir, Path: filepath.Join(dir, "out.jsonl"), Goroutines: busy}
		p.MaxDisk = []int64{0, MinMaxDisk, MinMaxDisk}[rnd.IntN(3)]
		byTag := rnd.IntN(4) == 0
		if byTag {
			p.Path = filepath.Join(dir, "out", "{tag}.jsonl")
		}
		var history []string
		n := 1 + rnd.IntN(4)
		for p.Round = range n {
			p.Seed, p.Tags, p.Count = rnd.Uint64N(1<<30), []int{1, 2, 30}[rnd.IntN(3)], 1+rnd.IntN(20)
			p.Point, p.Leave, p.NeverShut = points[rnd.IntN(len(points))], rnd.IntN(6) == 0, rnd.IntN(3) == 0
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, string(text))
			cmd := exec.Command(os.Args[0], "-test.run=^TestKillOrderedChild$")
			cmd.Env = append(os.Environ(), "SPILLWAY_MOVER_PLAN="+string(text))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
				t.Fatalf("%q: %v\n%s", history, err, out)
			}
			if bytes.Contains(out, []byte("others wrote")) {
				t.Fatalf("%q: what a process wrote its successor does not know:\n%s", history, out)
			}
			done++
		}
		m, _ := p.open(t, nil)
		if err := m.Close(within(t, patience)); err != nil {
			t.Fatalf("%q: %v", history, err)
		}
		if s := m.Stats(); s.Accepted != s.Delivered || s.Accepted != s.Adopted.Events {
			t.Errorf("%q: %+v", history, s)
		}
		page, err := os.ReadFile(filepath.Join(dir, "page"))
		if err != nil {
			t.Fatal(err)
		}
		total := readOrdered(t, dir)
		for g := range uint32(n * busy) {
			counted := binary.NativeEndian.Uint32(page[4*g:])
			if n := total[g]; n != counted && n != counted+1 {
				t.Errorf("of goroutine %d came %d, accepted were %d", g, n, counted)
			}
		}
		if t.Failed() {
			t.Fatalf("%q", history)
		}
		if left := entriesOf(t, mem); len(left) > 0 {
			t.Errorf("%q: left %q", history, left)
		}
	}
}

// readOrdered returns how many lines of each goroutine there are: each once, and in one file in
// their order.
func readOrdered(t *testing.T, dir string) map[uint32]uint32 {
	t.Helper()
	one, err := filepath.Glob(filepath.Join(dir, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	many, err := filepath.Glob(filepath.Join(dir, "out", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[uint32][]uint32{}
	for _, path := range slices.Concat(one, many) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		last := map[uint32]uint32{}
		for line := range bytes.Lines(text) {
			var e struct {
				G, N uint32
			}
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
			if e.N+1 <= last[e.G] {
				t.Errorf("%s: of goroutine %d %d comes behind %d", path, e.G, e.N, last[e.G]-1)
				return nil
			}
			last[e.G] = e.N + 1
			all[e.G] = append(all[e.G], e.N)
		}
	}
	total := map[uint32]uint32{}
	for g, ns := range all {
		slices.Sort(ns)
		for i, n := range ns {
			if n != uint32(i) {
				t.Errorf("of goroutine %d came %d, not %d", g, n, i)
				return nil
			}
		}
		total[g] = uint32(len(ns))
	}
	return total
}
