// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// Reports is told what goes on while credentials are in force. Its functions are called on the
// goroutine of a connection and must not block; nil ones are not called.
type Reports struct {
	// Warn is a warning, or says that a new version cannot be used and the old one stays in
	// force.
	Warn func(error)
	// Renewed names the files that have changed and are in force now.
	Renewed func(files []string)
}

func (r *Reports) warn(err error) {
	if r.Warn != nil {
		r.Warn(err)
	}
}

func (r *Reports) renewed(files []string) {
	if r.Renewed != nil {
		r.Renewed(files)
	}
}

const (
	lookEvery     = time.Second      // files are looked at at most that often
	maxLookTime   = 2 * time.Second  // a connection waits for that at most so long
	maxReloadTime = 10 * time.Second // a reload waits at most so long
)

// A kept value is made from files, and anew when they have changed. What is in force is read
// without a lock.
type kept[T any] struct {
	load    func(*files) (T, error)
	reports *Reports
	value   atomic.Pointer[T] // in force; written by the goroutine that looks

	looking chan struct{} // holds one while a goroutine looks, which has the fields below
	looked  time.Time
	good    *files // of what is in force
	last    *files // as of the last load, good or not
	failed  error  // of the last load
	told    bool   // of failed
}

// keep makes the value for the first time.
func keep[T any](load func(*files) (T, error), r *Reports) (*kept[T], error) {
	k := &kept[T]{load: load, reports: r, looking: make(chan struct{}, 1), last: &files{}, looked: time.Now()}
	if err := k.renew(); err != nil {
		return nil, err
	}
	return k, nil
}

// get returns the value in force, after a look at the files when it is time for one. Nobody waits
// for another one's look, nor for long for his own: the disk may hang.
func (k *kept[T]) get() *T {
	select {
	case k.looking <- struct{}{}:
		now := time.Now()
		if since := now.Sub(k.looked); 0 <= since && since < lookEvery {
			<-k.looking
			break
		}
		k.looked = now
		_ = k.bounded(time.After(maxLookTime), func() error { // if it takes longer what is in force has to do
			k.look(now)
			return nil
		})
	default:
	}
	return k.value.Load()
}

var errSlow = errors.New("reading takes too long, the disk does not answer")

// bounded returns what f does, but not later than end. f then goes on. The caller looks, and no
// longer does when f is done.
func (k *kept[T]) bounded(end <-chan time.Time, f func() error) error {
	result := make(chan error, 1)
	go func() {
		err := f()
		<-k.looking
		result <- err
	}()
	select {
	case err := <-result:
		return err
	case <-end:
		return errSlow
	}
}

func (k *kept[T]) look(now time.Time) {
	if k.changed() {
		_ = k.renew() // it is told here, when it is time
	}
	if k.failed != nil && !k.told && k.last.settled(now) {
		k.told = true
		k.reports.warn(k.failed)
	}
}

// changed reports whether a file has.
func (k *kept[T]) changed() bool {
	return slices.ContainsFunc(k.last.seen, (*seen).changed)
}

// reload makes the value anew, whatever the files look like.
func (k *kept[T]) reload() error {
	timeout := time.After(maxReloadTime)
	select {
	case k.looking <- struct{}{}:
	case <-timeout:
		return errSlow
	}
	return k.bounded(timeout, func() error {
		k.looked = time.Now()
		err := k.renew()
		k.told = true // the caller tells
		return err
	})
}

// renew loads the files. If that fails what was in force stays so.
func (k *kept[T]) renew() error {
	now := &files{}
	value, err := k.load(now)
	before, missed := k.last, k.failed != nil && k.told
	k.last, k.failed, k.told = now, err, false
	if err != nil {
		now.warnings = before.warnings
		return err
	}
	k.value.Store(&value)
	for _, w := range now.warnings {
		if !slices.ContainsFunc(before.warnings, func(old error) bool { return old.Error() == w.Error() }) {
			k.reports.warn(w)
		}
	}
	good := k.good
	k.good = now
	if good == nil {
		return nil
	}
	names := now.differ(good)
	if len(names) == 0 && missed { // they are what they were before they were broken
		// What stood behind the broken one was not read.
		names = slices.DeleteFunc(now.differ(before), func(name string) bool { return !before.has(name) })
	}
	if len(names) > 0 {
		k.reports.renewed(names)
	}
	return nil
}
