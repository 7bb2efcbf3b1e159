// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"fmt"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
)

// A Mover takes events and carries them to the destination. All methods may be called by many
// goroutines.
//
// How it is organised: the fields here are anybody's, but for loop, which belongs to the mover's
// goroutine (run.go); others reach it by the mailbox. A second goroutine does what may hang in a
// disk (disk.go). Lock order: rings.mu, mailbox.mu; source.mu is held alone.
type Mover struct {
	*ground
	batch  int   // bytes of a window; the loop's
	flight int64 // bytes of entries that may be with the destination; the loop's

	shut chan struct{} // closed when Close has done what it could; then closeErr is set

	dead  dead
	shelf struct { // the disk's goroutine's
		folder *spill.Folder
		spill  *spill.Spill // that of this process; nil before it is needed
	}
	state states

	inbox struct {
		sync.Mutex
		done   []*flight
		more   []*flight // written, but the state that is for them has not come
		closed bool
	}

	closeErr error // see shut
	leftErr  error // see ended

	loop
}

// Open opens a ring, starts the mover's goroutine and looks for what dead processes left.
func Open(c *Config) (*Mover, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := newGround(&cfg)
	if err != nil {
		return nil, err
	}
	m := &Mover{ground: g, shut: make(chan struct{})}
	m.state.m, m.dead.m = m, m
	m.resumer, _ = cfg.Destination.(output.Resumer)
	m.sourced, _ = cfg.Destination.(output.Sourced)
	m.measure()
	m.work.init(m)
	m.timer = time.NewTimer(time.Hour)
	m.anchorAt = time.Now().Add(anchorEvery)
	m.shelf.folder = spill.New(&spill.Options{
		Name: cfg.Name, Identity: cfg.identity(), Dir: cfg.Dir, Shm: cfg.Shm, MaxDisk: cfg.MaxDisk,
		BootID: func() string { return m.rings.cur.Load().r.Owner().BootID },
		Report: m.report, GaveUp: m.gaveUp, FS: cfg.fs, Fault: cfg.fault,
	})
	m.start(m.adoptRings())
	go m.run()
	return m, nil
}

// measure says how large windows may be, and how much the destination may have: parts of the ring,
// which is smaller while there is no memory for all of it.
func (m *Mover) measure() {
	size := m.rings.cur.Load().r.Size()
	m.batch = int(min(int64(m.cfg.BatchBytes), max(size/16, 16<<10)))
	if m.cfg.Dir != "" {
		m.batch = int(min(int64(m.batch), m.cfg.MaxDisk/8)) // a journal takes nothing that is larger than itself
	}
	m.flight = max(size/4, int64(m.batch))
}

// start has the states restored, and what lies in Dir found, before anything is submitted.
func (m *Mover) start(rings []*source) {
	m.adoptAt = time.Now().Add(m.cfg.adoptEvery)
	if m.resumer == nil && m.cfg.Dir == "" {
		m.found(rings, nil)
		return
	}
	m.adopted = rings
	m.disk.do("looking for spills", func() {
		m.report(m.shelf.folder.Unusable())
		spills := m.scout(rings)
		if err := m.state.resume(rings, spills); err != nil {
			m.report(fmt.Errorf("restoring what the destination was doing: %w", err))
		}
		if !m.mail.post(func() { m.found(rings, spills) }) {
			closeAll(spills)
		}
	})
}

// Drop counts events that the caller itself left out, for the next summary event to tell.
func (m *Mover) Drop(r Reason, n uint64) {
	if r < reasons && !m.closed.Load() {
		m.count.drop(r, n)
	}
}

// Stats returns a picture of the Mover.
func (m *Mover) Stats() Stats { return m.count.stats() }
