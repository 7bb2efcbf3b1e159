// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// A keeper compresses and deletes rotated files, on a goroutine of its own. A nil one leaves them
// alone.
type keeper struct {
	rotation Rotation
	report   func(error)
	paths    map[string]error // that are looked at again, and what was last reported of them

	mu   sync.Mutex
	due  map[string]struct{} // paths to be looked at
	held map[string]struct{} // rotated files that are not to be touched

	started bool // by the first tend
	wake    chan struct{}
	finish  chan struct{} // closed: what is due is done, and no more
	stop    chan struct{} // closed: not even that
	exited  chan struct{}
}

// How long it waits with files that somebody still writes, and before it looks at their age again.
const (
	busyPause = time.Minute
	agePause  = time.Hour
)

func newKeeper(r Rotation, report func(error)) *keeper {
	return &keeper{
		rotation: r, report: report, paths: map[string]error{}, due: map[string]struct{}{}, held: map[string]struct{}{},
		wake: make(chan struct{}, 1), finish: make(chan struct{}), stop: make(chan struct{}), exited: make(chan struct{}),
	}
}

// tend has the rotated files of a path looked after soon.
func (k *keeper) tend(path string) {
	if k == nil {
		return
	}
	if !k.started {
		k.started = true
		go k.run()
	}
	k.mu.Lock()
	k.due[path] = struct{}{}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// hold keeps a rotated file as it is until free.
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

// round looks at the paths that are due, and says when to come again. The error is errStopped.
func (k *keeper) round() (pause time.Duration, err error) {
	pause = agePause
	for _, path := range k.take() {
		left, err := k.look(path)
		if errors.Is(err, errStopped) {
			return 0, err
		}
		if errors.Is(err, errBusy) {
			pause, err = busyPause, nil
		}
		if err != nil {
			pause = busyPause
			if before := k.paths[path]; before == nil || before.Error() != err.Error() {
				k.report(codes.FileRotation.Errorf("files: rotated files: %w", err))
			}
		}
		if left {
			k.paths[path] = err
		} else {
			delete(k.paths, path)
		}
	}
	return pause, nil
}

// again makes all paths due that there was a reason to look at again.
func (k *keeper) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path := range k.paths {
		k.due[path] = struct{}{}
	}
}

// take returns the paths that are due.
func (k *keeper) take() (paths []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for path := range k.due {
		paths = append(paths, path)
	}
	clear(k.due)
	return paths
}

// look deletes and compresses rotated files of a path, and reports whether there is a reason to
// look again. What takes no time comes first: it is done although there be no time for the rest.
func (k *keeper) look(path string) (again bool, err error) {
	all, err := rotatedOf(path)
	if err != nil {
		return false, err
	}
	var errs []error
	var kept []rotated
	for i, r := range all {
		old := k.rotation.MaxAge > 0 && time.Since(r.at) > k.rotation.MaxAge
		switch {
		case k.holds(r.path): // it comes up again when it is free
		case old || k.rotation.Keep > 0 && i >= k.rotation.Keep || !r.forms[0] && !r.forms[1]:
			errs = append(errs, r.remove())
		default:
			again = again || k.rotation.MaxAge > 0
			kept = append(kept, r)
		}
	}
	for _, r := range kept {
		switch {
		case k.rotation.Compress && r.forms[0]:
			err := compress(r.path, k.stop)
			if errors.Is(err, errStopped) {
				return false, err
			}
			errs = append(errs, err)
		case r.forms[2]: // nobody goes on with it
			r.forms[0], r.forms[1] = false, false
			errs = append(errs, r.remove())
		}
	}
	err = errors.Join(errs...)
	return again || err != nil, err
}

// remove deletes all forms of a rotated file that nobody writes. A name is deleted, never what a
// link leads to.
func (r *rotated) remove() error {
	if r.forms[0] {
		f, err := os.OpenFile(r.path, readFlags, 0)
		if err == nil { // if it may not be read, nobody knows whether it is locked
			free := lockFile(f, true)
			if !removeOpen {
				f.Close()
			}
			defer f.Close()
			if !free {
				return errBusy
			}
		}
	}
	var errs []error
	for form, there := range r.forms {
		if !there {
			continue
		}
		if err := os.Remove(r.path + endings[form]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
