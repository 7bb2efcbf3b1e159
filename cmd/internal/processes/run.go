// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"time"
)

// Options say what Run does.
type Options struct {
	Processes int      // which write at once
	Lines     int      // of each of them
	Rounds    int      // how often each way is taken; medians are told
	Ways      []string // Ways, or some of them
	Dir       string   // where files go: the disk that is measured

	// Writer is the command that calls Write with what it is given.
	Writer func(ctx context.Context, way string, number, lines int, dir string) *exec.Cmd
	// Collector is the command that runs a collector, with these arguments of serve.
	Collector func(ctx context.Context, arguments ...string) *exec.Cmd
	// Progress is called twice a second, and when a round begins. It may be nil.
	Progress func(Progress)
}

// Progress is how far Run has come.
type Progress struct {
	Way                 string
	Round, Rounds       int // from 1
	Ended, Processes    int // of this round
	Elapsed             time.Duration
	Finished, AllRounds int // of all ways together
}

// String is one line.
func (p Progress) String() string {
	return fmt.Sprintf("%d of %d: %s, round %d of %d, %d of %d processes have ended, %v",
		p.Finished+1, p.AllRounds, p.Way, p.Round, p.Rounds, p.Ended, p.Processes,
		p.Elapsed.Round(100*time.Millisecond))
}

// Run takes each way in turn, round by round. What it has measured so far comes with an error.
func Run(ctx context.Context, o *Options) (*Report, error) {
	if o.Processes < 1 || o.Lines < 1 || o.Rounds < 1 {
		return nil, errors.New("processes, lines and rounds have to be at least 1")
	}
	r := &Report{Processes: o.Processes, Lines: o.Lines, Rounds: o.Rounds, Dir: o.Dir}
	var chosen []way
	for _, w := range ways {
		if slices.Contains(o.Ways, w.name) {
			chosen = append(chosen, w)
			r.Results = append(r.Results, Result{Way: w.name, Says: w.says})
		}
	}
	for round := range o.Rounds {
		for i, w := range chosen {
			at := Progress{
				Way: w.name, Round: round + 1, Rounds: o.Rounds, Processes: o.Processes,
				Finished: round*len(chosen) + i, AllRounds: o.Rounds * len(chosen),
			}
			m, err := o.measure(ctx, &w, at)
			if err != nil {
				return r, fmt.Errorf("%s: %w", w.name, err)
			}
			r.Results[i].add(m)
		}
	}
	return r, nil
}

func (o *Options) measure(ctx context.Context, w *way, at Progress) (m measure, err error) {
	dir, err := os.MkdirTemp(o.Dir, "spillway-bench-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &session{options: o, dir: dir}
	if w.server != nil {
		if err := w.server(ctx, s); err != nil {
			return m, err
		}
	}
	m.wall, err = o.write(ctx, w, s, at)
	if s.stop != nil {
		err = errors.Join(err, s.stop())
	}
	if err != nil {
		return m, err
	}
	m.cpu = s.cpu
	m.found, err = s.check(o.Processes, o.Lines)
	return m, err
}

// A session is what one round needs beyond its processes.
type session struct {
	options  *Options
	dir      string
	stop     func() error // ends the server; nil: there is none
	received *bytes.Buffer
	cpu      time.Duration // of all processes of the round
}

// write starts the processes and waits until the last has ended.
func (o *Options) write(ctx context.Context, w *way, s *session, at Progress) (time.Duration, error) {
	var ended atomic.Int64
	began := time.Now()
	done := o.tell(&ended, at, began)
	defer done()
	all := make([]*child, 0, o.Processes)
	var err error
	for i := range o.Processes {
		c := &child{cmd: o.Writer(ctx, w.name, i, o.Lines, s.dir)}
		c.cmd.Stderr = &c.said
		if err = c.cmd.Start(); err != nil {
			break
		}
		all = append(all, c)
	}
	for _, c := range all {
		err = errors.Join(err, c.wait())
		ended.Add(1)
		s.cpu += c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
	}
	return time.Since(began), err
}

// A child is a process that was started, and what it complained about.
type child struct {
	cmd  *exec.Cmd
	said bytes.Buffer
}

func (c *child) wait() error {
	err := c.cmd.Wait()
	if err != nil && c.said.Len() > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(c.said.Bytes()))
	}
	return err
}

// tell calls Progress until the function that it returns is called.
func (o *Options) tell(ended *atomic.Int64, at Progress, began time.Time) (done func()) {
	if o.Progress == nil {
		return func() {}
	}
	o.Progress(at)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(time.Second / 2); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				at.Ended, at.Elapsed = int(ended.Load()), time.Since(began)
				o.Progress(at)
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
