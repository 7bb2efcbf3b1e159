// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	crashSeed   = flag.Uint64("seed", 0, "seed of the crash test; 0 picks one")
	crashStates = flag.Int("states", 0, "crashes of the crash test; 0 is 3000, or 300 with -short")
)

// TestPowerCut runs a journal on a file system whose power is cut at a random call, recovers,
// checks, and goes on with what is left, again and again. What it asserts:
//
//   - nothing that Sync returned for, that was read, or that was committed, is lost; nor, where
//     only the process ends, what Flush returned for
//   - everything read was appended, at that position, and is read in order; a position is never
//     used twice
//   - nothing that can be read lies between a record and the one that AppendAfter said comes before
//     it
//   - the identity is that of the first Open that returned
//   - the cursor is one that was committed, with its state, and not older than the last Commit that
//     returned
func TestPowerCut(t *testing.T) {
	seed, states := *crashSeed, *crashStates
	if states == 0 {
		states = 3000
		if testing.Short() || raceEnabled {
			states = 300
		}
	}
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	t.Logf("to repeat: -run TestPowerCut -seed %d", seed)
	n := 0
	for round := uint64(0); n < states && !t.Failed(); round++ {
		synctest.Test(t, func(t *testing.T) {
			c := &crashRun{
				t: t, rnd: rand.New(rand.NewPCG(seed, round)), all: map[Position]crashRec{},
				gone: map[Position]bool{},
			}
			c.name = fmt.Sprintf("seed %d round %d", seed, round)
			c.fs = newCrashFS(rand.New(rand.NewPCG(seed, round+1<<32)))
			c.run(&n, 12)
		})
	}
	t.Logf("%d crashes", n)
}

type crashRec struct {
	n    uint64
	size int
	prev Position
}

// crashRun is one file system through several crashes.
type crashRun struct {
	t    *testing.T
	name string
	mu   sync.Mutex // of events
	rnd  *rand.Rand
	fs   *crashFS

	all      map[Position]crashRec // everything ever appended
	gone     map[Position]bool     // of these, what a crash took
	order    []Position            // their positions, as appended
	next     uint64                // number of the next record
	flushed  Position              // by a process that was killed
	kept     Position              // by the page cache, after that
	synced   Position              // nothing up to here may be lost
	commits  []Position            // by number of the commit, which is its state
	sure     int                   // the last that returned; index in commits
	id       [16]byte              // of the directory, once an Open returned
	events   []string              // what happened, told when a check fails
	slow     map[Position]bool     // where the second cursor was to be committed
	slowSure Position              // the last that returned
	faulty   atomic.Bool           // the disk fails now and then
}

func (c *crashRun) fatalf(format string, args ...any) {
	c.t.Helper()
	for _, e := range c.events[max(0, len(c.events)-60):] {
		c.t.Log(e)
	}
	c.t.Fatalf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

func (c *crashRun) run(n *int, lives int) {
	c.commits, c.slow = []Position{0}, map[Position]bool{}
	for range lives {
		c.life()
		*n++
	}
}

func (c *crashRun) event(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, fmt.Sprintf(format, args...))
}

// life opens the journal, checks it, uses it, and loses power.
func (c *crashRun) life() {
	r := c.rnd
	c.fs.cutIn = 1 + r.IntN(400)
	if r.IntN(4) == 0 {
		c.fs.cutIn = 1 + r.IntN(40) // in the middle of recovery
	}
	// Every third life ends with the process only. What its disk was told and forgot must then be
	// made good by recovery.
	c.fs.kills = r.IntN(3) == 0
	c.flushed = 0
	o := &Options{
		FS: c.fs, SegmentBytes: minSegmentBytes << r.IntN(2), MaxBytes: minSegmentBytes * int64(8+r.IntN(8)),
		Report: func(err error) {
			c.event("reported: %v", err)
		},
	}
	// A quarter of the lives have a disk that fails now and then.
	faulty := &c.faulty
	faulty.Store(false)
	failing := r.IntN(4) == 0
	if failing {
		fr := rand.New(rand.NewPCG(r.Uint64(), 1))
		c.fs.failing = func(op, _ string) error {
			if !faulty.Load() || fr.IntN(4) > 0 {
				return nil
			}
			switch op {
			case "write", "sync", "syncdir":
				return syscall.EIO
			case "create", "allocate":
				return syscall.ENOSPC
			case "read", "rename":
				return syscall.EIO
			}
			return nil
		}
	}
	// Half of the lives keep a reserve, and a quarter have a disk that the journal fills.
	if r.IntN(2) == 0 {
		o.Reserve = 64 << 10
	}
	c.fs.mu.Lock()
	c.fs.limit = 0
	if r.IntN(4) == 0 {
		// With less, and no reserve, recovery goes without its second net.
		c.fs.limit = c.fs.used + 16*pageSize + r.Int64N(6*minSegmentBytes)
		if o.Reserve > 0 && c.fs.sizeOf("d", reserveFile) >= o.Reserve/2 && r.IntN(2) == 0 {
			c.fs.limit = c.fs.used + r.Int64N(16*pageSize)
		}
	}
	used := c.fs.used
	c.fs.mu.Unlock()
	j, err := Open("d", o)
	c.event("open: %v, disk of %d with %d", err, c.fs.limit, used)
	if err == nil {
		j.mu.Lock()
		for _, s := range j.segs {
			c.event("  %x: end %x last %x", s.seq, s.end.Load(), s.last)
		}
		for _, s := range j.free {
			c.event("  %x: free", s.seq)
		}
		j.mu.Unlock()
	}
	if err == nil {
		if id := j.Identity(); id == noIdentity && c.fs.limit == 0 || id != noIdentity && c.id != noIdentity &&
			c.id != id {
			c.fatalf("identity is %x, was %x", id, c.id)
		}
		if j.Identity() != noIdentity {
			c.id = j.Identity()
		}
		func() {
			defer j.Close()
			c.use(j, faulty)
		}()
	} else if !errors.Is(err, errPower) && (c.fs.limit == 0 || !isNoSpace(err)) {
		c.fatalf("open: %v", err)
	}
	c.fs.mu.Lock()
	if !c.fs.dead {
		c.fs.failing = nil
		c.fs.cut()
		c.kept = 0
	} else if !c.fs.kills {
		c.kept = 0
	} else if !failing {
		// Pages that a failed sync left in memory only may be gone before anyone wakes up;
		// otherwise what was flushed is there, for the next process.
		c.kept = max(c.kept, c.flushed)
	}
	after := c.fs.after
	c.fs.mu.Unlock()
	c.fs = after
}

func (c *crashRun) use(j *Journal, faulty *atomic.Bool) {
	r := c.rnd
	rd, err := j.Reader("r")
	if err != nil {
		if !errors.Is(err, errPower) && !faulty.Load() && (c.fs.limit == 0 || !isNoSpace(err)) {
			c.fatalf("reader: %v", err)
		}
		return
	}
	p, state := rd.Committed()
	num := 0
	if len(state) > 0 {
		num = int(binary.LittleEndian.Uint32(state))
	}
	if num < c.sure || num >= len(c.commits) || num > 0 && c.commits[num] != p {
		c.fatalf("cursor is commit %d at %v, committed at %v; last that returned was %d of %d", num, p,
			c.commits[min(num, len(c.commits)-1)], c.sure, len(c.commits))
	}
	c.sure = num
	// What was synced and lies behind the cursor must be there.
	got := c.read(j, rd, p, max(c.synced, c.kept))
	if got == nil {
		return
	}
	// What was never synced and is not there now is gone, and must not come back.
	c.order = slices.DeleteFunc(c.order, func(q Position) bool {
		gone := q > p && !got[q]
		if gone {
			c.gone[q] = true
		}
		return gone
	})
	c.synced = max(c.synced, rd.Pos())
	// A second cursor, which is behind mostly.
	rq, err := j.Reader("q")
	if err != nil {
		rq = nil
	} else if p, _ := rq.Committed(); p < c.slowSure || c.slowSure > 0 && !c.slow[p] {
		c.fatalf("the second cursor is at %v, committed at %v", p, c.slowSure)
	}
	for range 60 + r.IntN(200) {
		if c.fs.off() {
			return
		}
		faulty.Store(c.fs.failing != nil && r.IntN(3) == 0)
		switch r.IntN(13) {
		case 0, 1, 2, 3, 4:
			size := 8 + r.IntN(300)
			if r.IntN(8) == 0 {
				size = r.IntN(20_000)
			}
			if r.IntN(100) == 0 {
				size = r.IntN(150_000)
			}
			c.append(j, size)
		case 5: // from several goroutines
			var wg sync.WaitGroup
			for range 1 + r.IntN(3) {
				n, size := r.IntN(15), 100+r.IntN(3000)
				wg.Go(func() {
					for range n {
						c.append(j, size)
					}
				})
			}
			wg.Wait()
		case 12:
			if rq == nil {
				continue
			}
			if c.read(j, rq, rq.Pos(), min(c.synced, j.Synced())) == nil {
				return
			}
			if p := rq.Pos(); r.IntN(2) == 0 {
				c.slow[p] = true
				if rq.Commit(p, nil) == nil {
					c.slowSure = p
				}
			}
		case 6, 7:
			p := j.Stats().Last
			if j.Sync(bg, p) == nil {
				c.synced = max(c.synced, p)
				c.event("synced %v", p)
			}
		case 8:
			p := j.Stats().Last
			if j.Flush(bg, p) == nil {
				c.flushed = max(c.flushed, p)
			}
		case 9:
			<-time.After(time.Duration(r.IntN(1500)) * time.Millisecond) // of the bubble
		case 10:
			if c.read(j, rd, rd.Pos(), min(c.synced, j.Synced())) == nil {
				return
			}
			c.synced = max(c.synced, rd.Pos())
		case 11:
			p := rd.Pos()
			if p == 0 {
				continue
			}
			// Every attempt is a commit that may be found later; one that returned must be.
			state := binary.LittleEndian.AppendUint32(nil, uint32(len(c.commits)))
			if r.IntN(20) == 0 {
				state = append(state, make([]byte, r.IntN(20_000))...)
			}
			c.commits = append(c.commits, p)
			commit := len(c.commits) - 1
			if rd.Commit(p, state) == nil {
				c.sure = commit
				c.event("committed %d at %v", commit, p)
			}
		}
	}
	if r.IntN(2) == 0 && !c.fs.off() && c.fs.failing == nil {
		// A clean end, sometimes.
		last := j.Stats().Last
		if j.Close() == nil {
			c.synced = max(c.synced, last)
			c.event("closed at %v", last)
		}
	}
}

func (c *crashFS) off() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

func (c *crashRun) append(j *Journal, size int) {
	c.mu.Lock()
	rec := crashRec{n: c.next, size: max(size, 8)}
	c.next++
	c.mu.Unlock()
	prev, p, err := j.AppendAfter(testRecord(rec.n, rec.size))
	if err != nil {
		return
	}
	rec.prev = prev
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.all[p]; ok {
		c.t.Errorf("%s: position %v of record %d was record %d's", c.name, p, rec.n, old.n)
	}
	c.all[p] = rec
	c.order = append(c.order, p)
}

// read reads to the end and checks. from was the position before, and everything after it up to
// synced must come. It returns what it read, or nil when the power went off.
func (c *crashRun) read(j *Journal, rd *Reader, from, synced Position) map[Position]bool {
	got := map[Position]bool{}
	last := from
	for {
		rec, ok, err := rd.TryNext()
		if err != nil {
			if c.fs.off() || errors.Is(err, errPower) {
				return nil
			}
			if errors.Is(err, syscall.EIO) && c.faulty.Swap(false) {
				continue // the device is well again
			}
			c.fatalf("read: %v", err)
		}
		if !ok {
			break
		}
		was, ok := c.all[rec.Pos]
		if c.gone[rec.Pos] {
			c.fatalf("position %v was lost and came back", rec.Pos)
		}
		if !ok || !bytes.Equal(rec.Data, testRecord(was.n, was.size)) {
			c.fatalf("position %v: %d bytes were read that were not appended there (known %v)", rec.Pos, len(rec.Data),
				ok)
		}
		if rec.Pos <= last {
			c.fatalf("position %v was read after %v", rec.Pos, last)
		}
		if was.prev < last && last > from {
			c.fatalf("position %v lies behind %v, which was said to come before %v", last, was.prev, rec.Pos)
		}
		last = rec.Pos
		got[rec.Pos] = true
	}
	if c.fs.off() {
		return nil
	}
	for _, p := range c.order {
		if p > from && p <= synced && !got[p] {
			c.fatalf("position %v (record %d, %d bytes) was synced and is lost; read from %v to %v, synced %v", p,
				c.all[p].n, c.all[p].size, from, last, synced)
		}
	}
	return got
}
