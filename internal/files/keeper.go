// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// A keeper compresses and deletes rotated files, on a goroutine of its own.
type keeper struct {
	rotation Rotation
	report   func(error)

	mu    sync.Mutex
	paths map[string]error // to be looked after, and what was last reported of them
	due   map[string]struct{}

	wake   chan struct{}
	stop   chan struct{}
	exited chan struct{}
}

// How long it waits with files that somebody still writes, and before it looks at their age again.
const (
	busyPause = time.Minute
	agePause  = time.Hour
)

func newKeeper(r Rotation, report func(error)) *keeper {
	k := &keeper{
		rotation: r, report: report, paths: map[string]error{}, due: map[string]struct{}{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), exited: make(chan struct{}),
	}
	go k.run()
	return k
}

// tend has the rotated files of a path looked after soon.
func (k *keeper) tend(path string) {
	k.mu.Lock()
	k.due[path] = struct{}{}
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// close ends the goroutine and waits for it. A compression that runs is given up.
func (k *keeper) close() {
	close(k.stop)
	<-k.exited
}

func (k *keeper) run() {
	defer close(k.exited)
	timer := time.NewTimer(agePause)
	defer timer.Stop()
	for {
		select {
		case <-k.stop:
			return
		case <-k.wake:
		case <-timer.C:
			k.mu.Lock()
			for path := range k.paths {
				k.due[path] = struct{}{}
			}
			k.mu.Unlock()
		}
		pause := agePause
		for _, path := range k.take() {
			left, err := k.look(path)
			if errors.Is(err, errStopped) {
				return
			}
			if errors.Is(err, errBusy) {
				pause, err = busyPause, nil
			}
			if err != nil {
				pause = busyPause
				if before := k.paths[path]; before == nil || before.Error() != err.Error() {
					k.report(fmt.Errorf("files: rotated files: %w", err))
				}
			}
			if left {
				k.paths[path] = err
			} else {
				delete(k.paths, path)
			}
		}
		timer.Reset(pause)
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

// look deletes and compresses rotated files of a path, and reports whether there is a reason to look again.
func (k *keeper) look(path string) (again bool, err error) {
	all, err := rotatedOf(path)
	if err != nil {
		return false, err
	}
	var errs []error
	for i, r := range all {
		old := k.rotation.MaxAge > 0 && time.Since(r.at) > k.rotation.MaxAge
		if old || k.rotation.Keep > 0 && i >= k.rotation.Keep || !r.forms[0] && !r.forms[1] {
			errs = append(errs, r.remove())
			continue
		}
		again = again || k.rotation.MaxAge > 0
		if !k.rotation.Compress || !r.forms[0] {
			continue
		}
		err := compress(r.path, k.stop)
		if errors.Is(err, errStopped) {
			return false, err
		}
		again = again || err != nil
		errs = append(errs, err)
	}
	return again, errors.Join(errs...)
}

// remove deletes all forms of a rotated file. A name is deleted, never what a link leads to.
func (r *rotated) remove() error {
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
