// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// Who may take over what a process leaves, and who may not.

// orphan is an order for a child that posts some events to a server that is down: what it holds is
// left when it is killed.
func orphan(h *rig.Home, s *rig.FakeServer, prefix string) rig.Order {
	return rig.Order{
		Destination: s.URL(""), Prefix: prefix, Goroutines: 4, Count: 3000, Pad: 100,
		Options: rig.ChildOptions{Shm: h.Shm, RingSize: 4 << 20},
	}
}

// adopter is an order for a child that only takes over.
func adopter(o rig.Order) rig.Order {
	o.Goroutines, o.Count, o.Page = 0, 0, ""
	return o
}

// TestLoggerTwoAdopters has two processes open at once what several dead ones left.
func TestLoggerTwoAdopters(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) {
			h := rig.NewHome(t)
			s := rig.NewFake(t)
			s.Down()
			var dead []*rig.ChildProcess
			var o rig.Order
			for i := range 4 {
				o = orphan(h, s, fmt.Sprint("dead", i))
				if spill {
					o.Options.Dir, o.Options.RingSize = h.Dir, 1<<20
				}
				dead = append(dead, rig.StartChild(t, o))
			}
			for _, c := range dead {
				c.Wait("posted")
			}
			for _, c := range dead {
				c.Kill()
			}
			s.Up()
			one, two := rig.StartChild(t, adopter(o)), rig.StartChild(t, adopter(o))
			one.Wait("posted")
			two.Wait("posted")
			a, b := one.End(), two.End()
			t.Logf("adopted: %+v and %+v; told: %q and %q", a.Stats.Adopted, b.Stats.Adopted, a.Told, b.Told)
			s.Ledger.Check(t)
			rig.WantAll(t, s.Ledger, dead...)
			h.WantEmpty()
		})
	}
}

// TestLoggerSuccessor kills a process whose own child, started after Open, lives on: the ring is
// free all the same.
func TestLoggerSuccessor(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Down()
	o := orphan(h, s, "dead")
	o.Child = true
	c := rig.StartChild(t, o)
	r := c.Wait("posted")
	if r.Pid == 0 {
		t.Fatal("no process id of the child's child")
	}
	alive := func() bool { return syscall.Kill(r.Pid, 0) == nil }
	defer func() {
		if p, err := os.FindProcess(r.Pid); err == nil {
			_ = p.Kill() //nolint:errcheck // it may have ended
		}
	}()
	c.Cmd.Process.Kill() //nolint:errcheck // the successor holds its output open: there is no end to wait for
	s.Up()
	rig.Eventually(t, "the process is dead", func() bool { // all of its threads: the last one lets go of the locks
		proc := fmt.Sprintf("/proc/%d", c.Cmd.Process.Pid)
		threads, terr := os.ReadDir(proc + "/task")
		state, err := os.ReadFile(proc + "/stat")
		return err != nil || terr == nil && len(threads) == 1 && bytes.Contains(state, []byte(") Z "))
	})
	l := h.Open(o.Destination, spillway.Options{})
	rig.WantLaw(t, rig.Closing(t, l))
	if !alive() {
		t.Error("the successor has ended: the test tests nothing")
	}
	_ = syscall.Kill(r.Pid, syscall.SIGKILL) //nolint:errcheck // so that the child's output ends
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	h.WantEmpty()
}

// TestLoggerStopped opens a second logger while the first one's process is stopped: nothing of it
// is taken, and it goes on.
func TestLoggerStopped(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Down()
	o := orphan(h, s, "stopped")
	c := rig.StartChild(t, o)
	c.Wait("posted")
	rig.Must(t, c.Cmd.Process.Signal(syscall.SIGSTOP))
	rig.Eventually(t, "the process is stopped", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Cmd.Process.Pid))
		rig.Must(t, err)
		return bytes.Contains(state, []byte(") T "))
	})
	s.Up()
	l := h.Open(o.Destination, spillway.Options{})
	stats := rig.Closing(t, l)
	rig.WantLaw(t, stats)
	if stats.Adopted != (spillway.Adopted{}) || s.Ledger.Events() > 0 {
		t.Errorf("taken from a living process: %+v, %d events", stats.Adopted, s.Ledger.Events())
	}
	rig.Must(t, c.Cmd.Process.Signal(syscall.SIGCONT))
	c.End()
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	h.WantEmpty()
}

// TestLoggerRecycledPID leaves a ring whose folder names a process that lives, as when its number
// was given out again.
func TestLoggerRecycledPID(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Down()
	o := orphan(h, s, "dead")
	c := rig.StartChild(t, o)
	c.Wait("posted")
	c.Kill()
	rings := h.Rings()
	if len(rings) != 1 {
		t.Fatalf("rings %v, want one", rings)
	}
	before := fmt.Sprintf(".%d.", c.Cmd.Process.Pid)
	name := filepath.Base(rings[0])
	if !strings.Contains(name, before) {
		t.Fatalf("ring %s has no process id %d", name, c.Cmd.Process.Pid)
	}
	rig.Must(t, os.Rename(rings[0], filepath.Join(filepath.Dir(rings[0]),
		strings.Replace(name, before, fmt.Sprintf(".%d.", os.Getpid()), 1))))
	s.Up()
	l := h.Open(o.Destination, spillway.Options{})
	rig.WantLaw(t, rig.Closing(t, l))
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	h.WantEmpty()
}

// TestLoggerContainers has process 1 of two containers use one volume.
func TestLoggerContainers(t *testing.T) {
	t.Parallel()
	unshare := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	out, err := exec.Command(unshare[0], append(unshare[1:], "sh", "-c", "echo $$")...).CombinedOutput()
	needs.Have(t, err == nil && strings.TrimSpace(string(out)) == "1",
		"a process namespace of its own needs root: %v: %s", err, out)
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Down()
	one, two := rig.StartChild(t, orphan(h, s, "one"), unshare...), rig.StartChild(t, orphan(h, s, "two"), unshare...)
	one.Wait("posted")
	two.Wait("posted")
	rings := h.Rings()
	for _, r := range rings {
		if !strings.Contains(filepath.Base(r), ".1.") {
			t.Errorf("%s is not of a process 1", r)
		}
	}
	if len(rings) != 2 {
		t.Fatalf("%d rings, want 2", len(rings))
	}
	one.Kill() // and with it all that is in the container
	s.Up()
	rig.Eventually(t, "the third container takes over from the first", func() bool {
		three := rig.StartChild(t, adopter(orphan(h, s, "three")), unshare...)
		three.Wait("posted")
		return three.End().Stats.Adopted.Rings == 1 // the container's end takes a moment
	})
	rig.WantAll(t, s.Ledger, one)
	two.End()
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, two)
	h.WantEmpty()
}

// TestLoggerForgery logs texts that are bytes of rings: the next process takes none of them for
// records.
func TestLoggerForgery(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Down()
	o := orphan(h, s, "first")
	c := rig.StartChild(t, o)
	c.Wait("posted")
	var forged [][]byte
	rig.Must(t, filepath.WalkDir(h.Rings()[0], func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		for len(b) > 0 && len(forged) < 60 {
			n := min(len(b), 32<<10)
			if bytes.ContainsFunc(b[:n], func(r rune) bool { return r != 0 }) {
				forged = append(forged, b[:n])
			}
			b = b[n:]
		}
		return err
	}))
	if len(forged) == 0 {
		t.Fatal("the ring has no bytes")
	}
	c.Kill()

	// The forger takes over the first ring, holds it too, and is left by Close as by a kill: the
	// server is down.
	l := h.Open(o.Destination, spillway.Options{RingSize: 8 << 20})
	for n, b := range forged {
		rig.Must(t, l.Post("t.0", rig.Item{K: "forged.0", N: uint64(n), Pad: string(b)}))
	}
	ctx, cancel := canceled(t)
	if err := l.Close(ctx); err == nil {
		t.Error("Close says that all is delivered, with the server down")
	}
	cancel()
	s.Up()
	last := h.Open(o.Destination, spillway.Options{})
	stats := rig.Closing(t, last)
	rig.WantLaw(t, stats)
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	s.Ledger.WantStream(t, "forged.0", uint64(len(forged)), uint64(len(forged)))
	if n := len(s.Ledger.Others); n > 0 {
		t.Errorf("%d events that nobody posted: %v", n, s.Ledger.Others[:min(n, 5)])
	}
	h.WantEmpty()
}

// TestLoggerOtherSettings kills a logger of small batches and has one of large ones deliver, and
// the other way round: chunks that were on their way come again as they were.
func TestLoggerOtherSettings(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	s.Manners = func(*rig.FakeConn, string) bool { return true } // takes, and never acks
	o := orphan(h, s, "dead")
	o.Options.FlushInterval = time.Millisecond
	c := rig.StartChild(t, o)
	c.Wait("posted")
	rig.Eventually(t, "chunks are on their way", func() bool { return s.Ledger.Events() > 0 })
	c.Kill()
	s.Mu.Lock()
	s.Manners = nil
	before := s.Chunks
	s.Mu.Unlock()
	l := h.Open(s.URL("window=2"), spillway.Options{FlushInterval: time.Second, RingSize: 16 << 20})
	stats := rig.Closing(t, l)
	rig.WantLaw(t, stats)
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	if s.Ledger.Repeated == 0 {
		t.Errorf("no chunk came again under its id: %d before the kill, %d in all", before, s.Chunks)
	}
	h.WantEmpty()
}

// TestLoggerOfAnother leaves what a logger of another destination left where it is.
func TestLoggerOfAnother(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s, other := rig.NewFake(t), rig.NewFake(t)
	s.Down()
	o := orphan(h, s, "dead")
	c := rig.StartChild(t, o)
	c.Wait("posted")
	c.Kill()
	stats := rig.Closing(t, h.Open(other.URL(""), spillway.Options{}))
	rig.WantLaw(t, stats)
	if stats.Adopted != (spillway.Adopted{}) || other.Ledger.Events() > 0 {
		t.Errorf("taken by a logger of another destination: %+v, %d events", stats.Adopted, other.Ledger.Events())
	}
	s.Up()
	rig.WantLaw(t, rig.Closing(t, h.Open(o.Destination, spillway.Options{})))
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, c)
	h.WantEmpty()
}

// TestLoggerExit has a process end without Close: what it accepted is delivered by the next.
func TestLoggerExit(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	s := rig.NewFake(t)
	var dead []*rig.ChildProcess
	for i := range 5 {
		o := orphan(h, s, "exit"+strconv.Itoa(i))
		o.Abandon = true
		c := rig.StartChild(t, o)
		dead = append(dead, c)
		rig.Must(t, c.Stdin.Close())
		<-c.Done
	}
	rig.WantLaw(t, rig.Closing(t, h.Open(s.URL(""), spillway.Options{})))
	s.Ledger.Check(t)
	rig.WantAll(t, s.Ledger, dead...)
	h.WantEmpty()
}
