// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway"
)

// The tests that kill a logger run it in a process of its own: this binary again, told by its
// environment to be a child.

func init() { child = runChild }

// An Order tells a child what to do.
type Order struct {
	Destination string       // URL
	Options     ChildOptions // of its logger
	Prefix      string       // of its streams
	Goroutines  int          // that post, each a stream
	Count       uint64       // events of each goroutine; 0: until it is killed
	Pad         int          // bytes of the padding of each event
	Page        string       // file that has, for each goroutine, how many of its events were accepted
	Child       bool         // start a process that outlives this one
	Abandon     bool         // when told to end, end without Close
	Stdout      string       // pipe that is its standard output for the logger; "": what it has
}

// ChildOptions are the spillway.Options that an Order sets.
type ChildOptions struct {
	Shm, Dir      string            // folders of rings and spills
	RingSize      int64             // 0: the default, as with the others
	FlushInterval time.Duration     // how long an event waits for others
	Overflow      spillway.Overflow // what a full ring does
}

// A Report is what a child says on its standard output, a line each time.
type Report struct {
	Said  string         // "posted", "closed"; with an Error "open", "post"
	Error string         // of opening, posting or closing
	Stats spillway.Stats // of the logger
	Pid   int            // of the process that outlives it
	Told  []string       // its diagnostics so far, 50 at most
}

// pageStride keeps the counters of goroutines in cache lines of their own.
const pageStride = 64

// runChild opens a logger, posts, waits until its standard input ends, and closes.
func runChild(text string) int {
	var o Order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	var told []string
	say := func(said string, l *spillway.Logger, pid int, err error) {
		r := Report{Said: said, Pid: pid}
		if l != nil {
			r.Stats = l.Stats()
		}
		if err != nil {
			r.Error = err.Error()
		}
		mu.Lock()
		r.Told = told
		mu.Unlock()
		if err := out.Encode(r); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if o.Stdout != "" {
		f, err := os.OpenFile(o.Stdout, os.O_WRONLY, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		os.Stdout = f
	}
	accepted, err := mapPage(o.Page, max(1, o.Goroutines))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	l, err := spillway.Open(o.Destination, &spillway.Options{
		Name: "trial", Shm: o.Options.Shm, Dir: o.Options.Dir, RingSize: o.Options.RingSize,
		FlushInterval: o.Options.FlushInterval, Overflow: o.Options.Overflow,
		Diagnostics: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if len(told) < 50 {
				told = append(told, err.Error())
			}
		},
	})
	if err != nil {
		say("open", nil, 0, err)
		return 1
	}
	pid := 0
	if o.Child {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		pid = c.Process.Pid
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is what matters
		close(ended)
	}()
	pad := strings.Repeat("p", o.Pad)
	var all sync.WaitGroup
	for g := range o.Goroutines {
		all.Go(func() {
			p := &Poster{Stream: fmt.Sprintf("%s.%d", o.Prefix, g)}
			for o.Count == 0 || p.Next < o.Count {
				switch err := p.Post(l, pad); {
				case err == nil:
					accepted[g*pageStride/8].Store(p.Next)
				case errors.Is(err, spillway.ErrFull): // again: the numbers have no gaps
					select {
					case <-ended:
						return
					case <-time.After(100 * time.Microsecond):
					}
				default:
					say("post", l, 0, err)
					return
				}
			}
		})
	}
	all.Wait()
	say("posted", l, pid, nil)
	<-ended
	if o.Abandon {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	err = l.Close(ctx)
	say("closed", l, 0, err)
	if err != nil {
		return 1
	}
	return 0
}

// mapPage maps a file of counters; what is stored there survives the process.
func mapPage(name string, n int) ([]atomic.Uint64, error) {
	size := n * pageStride
	if name == "" {
		return make([]atomic.Uint64, size/8), nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b[0])), size/8), nil
}

// A ChildProcess runs a logger.
type ChildProcess struct {
	t     testing.TB
	Cmd   *exec.Cmd // the process
	order Order
	Stdin io.WriteCloser // closed to end it
	Log   *LogBook       // its standard error
	Done  chan struct{}  // closed when it has ended

	mu      sync.Mutex
	reports []Report
}

// StartChild starts one. The command before it, if any, is what runs it, as "unshare" does.
func StartChild(t testing.TB, o Order, before ...string) *ChildProcess {
	t.Helper()
	if o.Page == "" {
		o.Page = filepath.Join(t.TempDir(), "page")
	}
	text, err := json.Marshal(o)
	Must(t, err)
	self, err := os.Executable()
	Must(t, err)
	command := append(before, self)
	p := &ChildProcess{
		t: t, Cmd: exec.Command(command[0], command[1:]...), order: o, Log: NewLogBook(),
		Done: make(chan struct{}),
	}
	p.Cmd.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	p.Stdin, err = p.Cmd.StdinPipe()
	Must(t, err)
	stdout, err := p.Cmd.StdoutPipe()
	Must(t, err)
	stderr, err := p.Cmd.StderrPipe()
	Must(t, err)
	Must(t, p.Cmd.Start())
	var read sync.WaitGroup
	read.Go(func() { p.Log.Follow(stderr) })
	read.Go(func() {
		lines := bufio.NewScanner(stdout)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r Report
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue
			}
			p.mu.Lock()
			p.reports = append(p.reports, r)
			p.mu.Unlock()
		}
	})
	go func() {
		read.Wait()
		_ = p.Cmd.Wait() //nolint:errcheck // how it ended is in ProcessState
		close(p.Done)
	}()
	t.Cleanup(func() {
		p.Kill()
		if text := p.Log.String(); text != "" &&
			(t.Failed() || strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") ||
				strings.Contains(text, "fatal error:")) {
			t.Errorf("child %d (%v) said:\n%s", p.Cmd.Process.Pid, p.Cmd.ProcessState, Tail(text, 6000))
		}
	})
	return p
}

// Kill ends the process as kill -9 does, and waits for it.
func (p *ChildProcess) Kill() {
	_ = p.Cmd.Process.Kill() //nolint:errcheck // it may have ended already
	<-p.Done
}

// Over tells whether the process has ended.
func (p *ChildProcess) Over() bool {
	select {
	case <-p.Done:
		return true
	default:
		return false
	}
}

// Find returns the last report of a kind.
func (p *ChildProcess) Find(said string) (r Report, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.reports {
		if r.Said == "post" || r.Said == "open" {
			p.t.Errorf("child %d: %s: %s", p.Cmd.Process.Pid, r.Said, r.Error)
		}
	}
	for i := len(p.reports) - 1; i >= 0; i-- {
		if p.reports[i].Said == said {
			return p.reports[i], true
		}
	}
	return r, false
}

// Wait waits for a report.
func (p *ChildProcess) Wait(said string) (r Report) {
	p.t.Helper()
	Eventually(p.t, fmt.Sprintf("child %d says %q", p.Cmd.Process.Pid, said), func() bool {
		over := p.Over()
		var ok bool
		if r, ok = p.Find(said); !ok && over {
			p.t.Fatalf("child %d ended (%v) without a word of %q:\n%s", p.Cmd.Process.Pid, p.Cmd.ProcessState, said,
				Tail(p.Log.String(), 4000))
		}
		return ok
	})
	return r
}

// End tells the process to close its logger, and waits for its end.
func (p *ChildProcess) End() Report {
	p.t.Helper()
	Must(p.t, p.Stdin.Close())
	r := p.Wait("closed")
	<-p.Done
	if r.Error != "" {
		p.t.Errorf("child %d: Close: %s", p.Cmd.Process.Pid, r.Error)
	}
	WantLaw(p.t, r.Stats)
	return r
}

// Accepted is how many events of each goroutine were accepted.
func (p *ChildProcess) Accepted() []uint64 {
	p.t.Helper()
	b, err := os.ReadFile(p.order.Page)
	if errors.Is(err, os.ErrNotExist) {
		b = nil // killed before it made it
	} else {
		Must(p.t, err)
	}
	n := make([]uint64, p.order.Goroutines)
	for g := range n {
		if at := g * pageStride; at+8 <= len(b) {
			n[g] = *(*uint64)(unsafe.Pointer(&b[at]))
		}
	}
	return n
}

// WantAll checks that what each child's goroutines had accepted came, once and in order; one more
// may have come of each goroutine than was counted before the kill.
func WantAll(t testing.TB, l *Ledger, children ...*ChildProcess) (events uint64) {
	t.Helper()
	for _, c := range children {
		for g, n := range c.Accepted() {
			l.WantStream(t, fmt.Sprintf("%s.%d", c.order.Prefix, g), n, n+1)
			events += n
		}
	}
	return events
}

// KillChildren starts children one after another and kills each. between is called after each kill.
func KillChildren(t testing.TB, r *rand.Rand, o Order, n int, between func()) []*ChildProcess {
	t.Helper()
	var children []*ChildProcess
	prefix := o.Prefix
	for i := range n {
		o.Prefix = fmt.Sprint(prefix, "r", i)
		o.Pad = r.IntN(400)
		o.Page = filepath.Join(t.TempDir(), "page")
		c := StartChild(t, o)
		children = append(children, c)
		if r.IntN(5) > 0 { // otherwise it may be killed while it starts and adopts
			Eventually(t, "the child logs", func() bool { return c.Over() || c.Accepted()[0] > 0 })
		}
		select {
		case <-c.Done:
			t.Fatalf("the child ended by itself: %v\n%s", c.Cmd.ProcessState, Tail(c.Log.String(), 6000))
		case <-time.After(time.Duration(r.Int64N(int64(150 * time.Millisecond)))):
		}
		c.Kill()
		if between != nil {
			between()
		}
	}
	return children
}
