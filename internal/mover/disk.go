// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"sync"
	"time"
)

// disk is a goroutine that does, in order, what a disk may hold up for any time. It runs while
// there is something to do, so a Mover that needs no disk has none.
type disk struct {
	mu      sync.Mutex
	jobs    []job
	running bool
	now     string // the job being done
	since   time.Time
	idle    chan struct{} // closed when it is not running; nil while nothing waits for that
}

type job struct {
	name string
	fn   func()
}

// do has fn called, after what was asked for before.
func (d *disk) do(name string, fn func()) {
	d.mu.Lock()
	d.jobs = append(d.jobs, job{name, fn})
	if !d.running {
		d.running = true
		d.now, d.since = name, time.Now() // so that doing shows it at once
		go d.run()
	}
	d.mu.Unlock()
}

func (d *disk) run() {
	for {
		d.mu.Lock()
		if len(d.jobs) == 0 {
			d.running, d.now, d.jobs = false, "", nil
			if d.idle != nil {
				close(d.idle)
				d.idle = nil
			}
			d.mu.Unlock()
			return
		}
		j := d.jobs[0]
		d.jobs[0] = job{}
		d.jobs = d.jobs[1:]
		d.now, d.since = j.name, time.Now()
		d.mu.Unlock()
		j.fn()
	}
}

// rest is closed when there is nothing left to do.
func (d *disk) rest() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle == nil {
		d.idle = make(chan struct{})
		if !d.running {
			close(d.idle)
			c := d.idle
			d.idle = nil
			return c
		}
	}
	return d.idle
}

// doing is the job that is being done, and since when; empty if there is none.
func (d *disk) doing() (job string, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now, d.since
}

// unfinished says what it is doing, nil if nothing.
func (d *disk) unfinished() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		return nil
	}
	return fmt.Errorf("%s, for %v", d.now, time.Since(d.since).Round(time.Millisecond))
}
