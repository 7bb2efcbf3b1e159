// SPDX-License-Identifier: Apache-2.0

package test

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
)

// Who may take over what a process leaves, and who may not.

// orphan is an order for a child that posts some events to a server that is down: what it holds is
// left when it is killed.
func orphan(h *home, s *fakeServer, prefix string) order {
	return order{
		Destination: s.url(""), Prefix: prefix, Goroutines: 4, Count: 3000, Pad: 100,
		Options: childOptions{Shm: h.shm, RingSize: 4 << 20},
	}
}

// adopter is an order for a child that only takes over.
func adopter(o order) order {
	o.Goroutines, o.Count, o.Page = 0, 0, ""
	return o
}

// TestLoggerTwoAdopters has two processes open at once what several dead ones left.
func TestLoggerTwoAdopters(t *testing.T) {
	t.Parallel()
	for _, spill := range []bool{false, true} {
		t.Run(fmt.Sprintf("spill=%t", spill), func(t *testing.T) {
			h := newHome(t)
			s := newFake(t)
			s.down()
			var dead []*childProcess
			var o order
			for i := range 4 {
				o = orphan(h, s, fmt.Sprint("dead", i))
				if spill {
					o.Options.Dir, o.Options.RingSize = h.dir, 1<<20
				}
				dead = append(dead, startChild(t, o))
			}
			for _, c := range dead {
				c.wait("posted")
			}
			for _, c := range dead {
				c.kill()
			}
			s.up()
			one, two := startChild(t, adopter(o)), startChild(t, adopter(o))
			one.wait("posted")
			two.wait("posted")
			a, b := one.end(), two.end()
			t.Logf("adopted: %+v and %+v; told: %q and %q", a.Stats.Adopted, b.Stats.Adopted, a.Told, b.Told)
			s.ledger.check(t)
			wantAll(t, s.ledger, dead...)
			h.wantEmpty()
		})
	}
}

// TestLoggerSuccessor kills a process whose own child, started after Open, lives on: the ring is
// free all the same.
func TestLoggerSuccessor(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	s.down()
	o := orphan(h, s, "dead")
	o.Child = true
	c := startChild(t, o)
	r := c.wait("posted")
	if r.Pid == 0 {
		t.Fatal("no process id of the child's child")
	}
	alive := func() bool { return syscall.Kill(r.Pid, 0) == nil }
	defer func() {
		if p, err := os.FindProcess(r.Pid); err == nil {
			_ = p.Kill() //nolint:errcheck // it may have ended
		}
	}()
	c.cmd.Process.Kill() //nolint:errcheck // the successor holds its output open: there is no end to wait for
	s.up()
	eventually(t, "the process is dead", func() bool { // all of its threads: the last one lets go of the locks
		proc := fmt.Sprintf("/proc/%d", c.cmd.Process.Pid)
		threads, terr := os.ReadDir(proc + "/task")
		state, err := os.ReadFile(proc + "/stat")
		return err != nil || terr == nil && len(threads) == 1 && bytes.Contains(state, []byte(") Z "))
	})
	l := h.open(o.Destination, spillway.Options{})
	wantLaw(t, closing(t, l))
	if !alive() {
		t.Error("the successor has ended: the test tests nothing")
	}
	_ = syscall.Kill(r.Pid, syscall.SIGKILL) //nolint:errcheck // so that the child's output ends
	s.ledger.check(t)
	wantAll(t, s.ledger, c)
	h.wantEmpty()
}

// TestLoggerStopped opens a second logger while the first one's process is stopped: nothing of it
// is taken, and it goes on.
func TestLoggerStopped(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	s.down()
	o := orphan(h, s, "stopped")
	c := startChild(t, o)
	c.wait("posted")
	must(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	eventually(t, "the process is stopped", func() bool {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		must(t, err)
		return bytes.Contains(state, []byte(") T "))
	})
	s.up()
	l := h.open(o.Destination, spillway.Options{})
	stats := closing(t, l)
	wantLaw(t, stats)
	if stats.Adopted != (spillway.Adopted{}) || s.ledger.events() > 0 {
		t.Errorf("taken from a living process: %+v, %d events", stats.Adopted, s.ledger.events())
	}
	must(t, c.cmd.Process.Signal(syscall.SIGCONT))
	c.end()
	s.ledger.check(t)
	wantAll(t, s.ledger, c)
	h.wantEmpty()
}

// TestLoggerRecycledPID leaves a ring whose folder names a process that lives, as when its number
// was given out again.
func TestLoggerRecycledPID(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	s.down()
	o := orphan(h, s, "dead")
	c := startChild(t, o)
	c.wait("posted")
	c.kill()
	rings := h.rings()
	if len(rings) != 1 {
		t.Fatalf("rings %v, want one", rings)
	}
	before := fmt.Sprintf(".%d.", c.cmd.Process.Pid)
	name := filepath.Base(rings[0])
	if !strings.Contains(name, before) {
		t.Fatalf("ring %s has no process id %d", name, c.cmd.Process.Pid)
	}
	must(t, os.Rename(rings[0], filepath.Join(filepath.Dir(rings[0]),
		strings.Replace(name, before, fmt.Sprintf(".%d.", os.Getpid()), 1))))
	s.up()
	l := h.open(o.Destination, spillway.Options{})
	wantLaw(t, closing(t, l))
	s.ledger.check(t)
	wantAll(t, s.ledger, c)
	h.wantEmpty()
}

// TestLoggerContainers has process 1 of two containers use one volume.
func TestLoggerContainers(t *testing.T) {
	t.Parallel()
	unshare := []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	out, err := exec.Command(unshare[0], append(unshare[1:], "sh", "-c", "echo $$")...).CombinedOutput()
	needs.Have(t, err == nil && strings.TrimSpace(string(out)) == "1",
		"a process namespace of its own needs root: %v: %s", err, out)
	h := newHome(t)
	s := newFake(t)
	s.down()
	one, two := startChild(t, orphan(h, s, "one"), unshare...), startChild(t, orphan(h, s, "two"), unshare...)
	one.wait("posted")
	two.wait("posted")
	rings := h.rings()
	for _, r := range rings {
		if !strings.Contains(filepath.Base(r), ".1.") {
			t.Errorf("%s is not of a process 1", r)
		}
	}
	if len(rings) != 2 {
		t.Fatalf("%d rings, want 2", len(rings))
	}
	one.kill() // and with it all that is in the container
	s.up()
	eventually(t, "the third container takes over from the first", func() bool {
		three := startChild(t, adopter(orphan(h, s, "three")), unshare...)
		three.wait("posted")
		return three.end().Stats.Adopted.Rings == 1 // the container's end takes a moment
	})
	wantAll(t, s.ledger, one)
	two.end()
	s.ledger.check(t)
	wantAll(t, s.ledger, two)
	h.wantEmpty()
}

// TestLoggerForgery logs texts that are bytes of rings: the next process takes none of them for
// records.
func TestLoggerForgery(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	s.down()
	o := orphan(h, s, "first")
	c := startChild(t, o)
	c.wait("posted")
	var forged [][]byte
	must(t, filepath.WalkDir(h.rings()[0], func(name string, d os.DirEntry, err error) error {
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
	c.kill()

	// The forger takes over the first ring, holds it too, and is left by Close as by a kill: the
	// server is down.
	l := h.open(o.Destination, spillway.Options{RingSize: 8 << 20})
	for n, b := range forged {
		must(t, l.Post("t.0", item{"forged.0", uint64(n), string(b)}))
	}
	ctx, cancel := canceled(t)
	if err := l.Close(ctx); err == nil {
		t.Error("Close says that all is delivered, with the server down")
	}
	cancel()
	s.up()
	last := h.open(o.Destination, spillway.Options{})
	stats := closing(t, last)
	wantLaw(t, stats)
	s.ledger.check(t)
	wantAll(t, s.ledger, c)
	s.ledger.wantStream(t, "forged.0", uint64(len(forged)), uint64(len(forged)))
	if n := len(s.ledger.others); n > 0 {
		t.Errorf("%d events that nobody posted: %v", n, s.ledger.others[:min(n, 5)])
	}
	h.wantEmpty()
}

// TestLoggerOtherSettings kills a logger of small batches and has one of large ones deliver, and
// the other way round: chunks that were on their way come again as they were.
func TestLoggerOtherSettings(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	s.manners = func(*fakeConn, string) bool { return true } // takes, and never acks
	o := orphan(h, s, "dead")
	o.Options.FlushInterval = time.Millisecond
	c := startChild(t, o)
	c.wait("posted")
	eventually(t, "chunks are on their way", func() bool { return s.ledger.events() > 0 })
	c.kill()
	s.mu.Lock()
	s.manners = nil
	before := s.chunks
	s.mu.Unlock()
	l := h.open(s.url("window=2"), spillway.Options{FlushInterval: time.Second, RingSize: 16 << 20})
	stats := closing(t, l)
	wantLaw(t, stats)
	s.ledger.check(t)
	wantAll(t, s.ledger, c)
	if s.ledger.repeated == 0 {
		t.Errorf("no chunk came again under its id: %d before the kill, %d in all", before, s.chunks)
	}
	h.wantEmpty()
}

// TestLoggerOfAnother leaves what a logger of another destination left where it is.
func TestLoggerOfAnother(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s, other := newFake(t), newFake(t)
	s.down()
	o := orphan(h, s, "dead")
	c := startChild(t, o)
	c.wait("posted")
	c.kill()
	stats := closing(t, h.open(other.url(""), spillway.Options{}))
	wantLaw(t, stats)
	if stats.Adopted != (spillway.Adopted{}) || other.ledger.events() > 0 {
		t.Errorf("taken by a logger of another destination: %+v, %d events", stats.Adopted, other.ledger.events())
	}
	s.up()
	wantLaw(t, closing(t, h.open(o.Destination, spillway.Options{})))
	s.ledger.check(t)
	wantAll(t, s.ledger, c)
	h.wantEmpty()
}

// TestLoggerExit has a process end without Close: what it accepted is delivered by the next.
func TestLoggerExit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	s := newFake(t)
	var dead []*childProcess
	for i := range 5 {
		o := orphan(h, s, "exit"+strconv.Itoa(i))
		o.Abandon = true
		c := startChild(t, o)
		dead = append(dead, c)
		must(t, c.stdin.Close())
		<-c.done
	}
	wantLaw(t, closing(t, h.open(s.url(""), spillway.Options{})))
	s.ledger.check(t)
	wantAll(t, s.ledger, dead...)
	h.wantEmpty()
}
