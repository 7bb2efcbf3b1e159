// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// A keeper compresses and deletes files that nobody writes any more, on a goroutine of its own:
// rotated ones, and those of ended processes and days past. A nil one leaves them alone.
type keeper struct {
	rotation Rotation
	pid      int                       // of this process
	awaited  func() ([]Process, error) // see Options; nil: there are none
	report   func(error)
	families map[string]*kept // that are looked at again, by name
	listing  time.Duration    // what the last look has taken to list it

	mu   sync.Mutex
	due  map[string]*family  // to be looked at, by name
	held map[string]struct{} // files that are not to be touched

	started bool // by the first tend
	wake    chan struct{}
	finish  chan struct{} // closed: what is due is done, and no more
	stop    chan struct{} // closed: not even that
	exited  chan struct{}
}

// kept is a family, and what was last reported of it.
type kept struct {
	*family
	told string
}

// How long it waits with files that somebody still writes, and before it looks at their age again.
const (
	busyPause = time.Minute
	agePause  = time.Hour
)

// listShare: of its time it takes one part in so many to list directories, while it has time.
const listShare = 10

func newKeeper(o *Options) *keeper {
	pid, _ := strconv.Atoi(o.self.pid) // a test may give it no number
	return &keeper{
		rotation: o.Rotation, pid: pid, awaited: o.Awaited, report: o.Report,
		families: map[string]*kept{}, due: map[string]*family{}, held: map[string]struct{}{},
		wake: make(chan struct{}, 1), finish: make(chan struct{}), stop: make(chan struct{}),
		exited: make(chan struct{}),
	}
}

// tend has the files of a family looked after soon.
func (k *keeper) tend(m *family) {
	if k == nil {
		return
	}
	if !k.started {
		k.started = true
		go k.run()
	}
	k.mu.Lock()
	k.due[m.name()] = m
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// hold keeps a file as it is until free.
func (k *keeper) hold(path string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.held[path] = struct{}{}
	k.mu.Unlock()
}

func (k *keeper) free(path string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	delete(k.held, path)
	k.mu.Unlock()
}

func (k *keeper) holds(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.held[path]
	return ok
}

// close lets the goroutine do what is due until ctx is done, and waits for its end. A compression
// that runs then is given up.
func (k *keeper) close(ctx context.Context) {
	if k == nil || !k.started {
		return
	}
	if ctx.Err() == nil {
		close(k.finish)
		select {
		case <-k.exited:
			return
		case <-ctx.Done():
		}
	}
	close(k.stop)
	<-k.exited
}

func (k *keeper) run() {
	defer close(k.exited)
	timer := time.NewTimer(agePause)
	defer timer.Stop()
	for last := false; !last; {
		select {
		case <-k.stop:
			return
		case <-k.finish:
			last = true
			k.again()
		case <-k.wake:
		case <-timer.C:
			k.again()
		}
		pause, err := k.round()
		if err != nil {
			return
		}
		timer.Reset(pause)
	}
}

// rest waits for so long, unless it is to end.
func (k *keeper) rest(d time.Duration) {
	if d < 10*time.Millisecond {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.stop:
	case <-k.finish:
	}
}

// round looks at the families that are due, and says when to come again. The error is errStopped.
func (k *keeper) round() (pause time.Duration, err error) {
	pause = agePause
	for name, m := range k.take() {
		k.rest(k.listing * (listShare - 1))
		left, err := k.look(m)
		if errors.Is(err, errStopped) {
			return 0, err
		}
		if errors.Is(err, errBusy) {
			pause, err = busyPause, nil
		}
		told := ""
		if err != nil {
			pause, told = busyPause, err.Error()
			if before := k.families[name]; before == nil || before.told != told {
				k.report(codes.FileRotation.Errorf("files: %s: files that nobody writes: %w", name, err))
			}
		}
		if left {
			k.families[name] = &kept{m, told}
		} else {
			delete(k.families, name)
		}
	}
	return pause, nil
}

// again makes all families due that there was a reason to look at again.
func (k *keeper) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, m := range k.families {
		k.due[name] = m.family
	}
}

// take returns the families that are due.
func (k *keeper) take() map[string]*family {
	k.mu.Lock()
	defer k.mu.Unlock()
	due := k.due
	k.due = map[string]*family{}
	return due
}
