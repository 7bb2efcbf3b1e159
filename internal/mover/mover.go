// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/ring"
)

// A Mover takes events and carries them to the destination. All methods may be called by many
// goroutines.
//
// How it is organised: the fields here are anybody's, but for loop, which belongs to the mover's
// goroutine (run.go); others reach it by post. A second goroutine does what may hang in a disk
// (disk.go). Lock order: swap, inbox; source.mu is held alone.
type Mover struct {
	cfg    Config
	batch  int   // bytes of a window; the loop's
	flight int64 // bytes of entries that may be with the destination; the loop's

	cur     atomic.Pointer[source] // where Append puts events
	closed  atomic.Bool
	closing chan struct{} // closed with it
	shut    chan struct{} // closed when Close has done what it could; then closeErr is set
	ended   chan struct{} // closed when the mover's goroutine has ended
	bell    chan struct{} // wakes it

	swap  sync.Mutex // over changes of cur and own
	own   atomic.Pointer[[]*source]
	gone  struct{ events uint64 } // appended to sources that are no longer in own; swap
	count counters
	disk  disk
	dead  dead
	shelf struct { // the disk's goroutine's
		folder *spill.Folder
		spill  *spill.Spill // that of this process; nil before it is needed
	}
	state states

	inbox struct {
		sync.Mutex
		calls  []func()
		done   []*flight
		more   []*flight // written, but the state that is for them has not come
		closed bool
	}

	short    atomic.Bool           // an Append with DropOldest found no room
	hopeless atomic.Bool           // a full ring stays full for now: neither destination nor spill takes anything
	slow     atomic.Bool           // an Append with Prompt waited in vain, and the destination has not caught up since
	why      atomic.Pointer[error] // why the disk takes nothing, as an ErrFull; nil while it does
	gaveUp   chan struct{}         // closed when Close waits no longer: whoever tries again and again stops
	closeErr error                 // see shut
	leftErr  error                 // see ended
	mainPath string                // of the ring that Open opened

	loop
}

// Open opens a ring, starts the mover's goroutine and looks for what dead processes left.
func Open(c *Config) (*Mover, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Mover{
		cfg:     cfg,
		closing: make(chan struct{}),
		shut:    make(chan struct{}),
		ended:   make(chan struct{}),
		gaveUp:  make(chan struct{}),
		bell:    make(chan struct{}, 1),
	}
	m.state.m, m.dead.m = m, m
	m.resumer, _ = cfg.Destination.(output.Resumer)
	m.sourced, _ = cfg.Destination.(output.Sourced)
	r := m.openRing()
	if r == nil {
		if r, err = ring.Open(m.ringOptions("")); err != nil {
			return nil, fmt.Errorf("mover: %w", err)
		}
	}
	m.measure(r)
	s := m.newSource(r, true, &m.state.own)
	m.own.Store(&[]*source{s})
	m.cur.Store(s)
	m.work.init(m)
	m.timer = time.NewTimer(time.Hour)
	m.anchorAt = time.Now().Add(anchorEvery)
	m.mainPath = r.Path()
	m.shelf.folder = spill.New(&spill.Options{
		Name: cfg.Name, Identity: m.identity(), Dir: cfg.Dir, Shm: cfg.Shm, MaxDisk: cfg.MaxDisk,
		BootID: func() string { return m.cur.Load().r.Owner().BootID },
		Report: m.report, GaveUp: m.gaveUp, FS: cfg.fs, Fault: cfg.fault,
	})
	m.start(m.adoptRings())
	go m.run()
	return m, nil
}

// measure says how large windows may be, and how much the destination may have: parts of the ring,
// which is smaller while there is no memory for all of it.
func (m *Mover) measure(r *ring.Ring) {
	m.batch = int(min(int64(m.cfg.BatchBytes), max(r.Size()/16, 16<<10)))
	if m.cfg.Dir != "" {
		m.batch = int(min(int64(m.batch), m.cfg.MaxDisk/8)) // a journal takes nothing that is larger than itself
	}
	m.flight = max(r.Size()/4, int64(m.batch))
}

func (m *Mover) ringOptions(dir string) *ring.Options {
	return &ring.Options{
		Dir:       dir,
		Name:      m.cfg.Name,
		Identity:  m.identity(),
		Size:      m.cfg.RingSize,
		MaxRecord: m.cfg.MaxEvent + tagRoom,
		Report:    m.cfg.Diagnostics,
	}
}

// tagRoom is what a payload may hold besides the record.
const tagRoom = 1<<10 + binary.MaxVarintLen16

// openRing opens the ring in shared memory, or returns nil when there is to be none, or cannot be.
func (m *Mover) openRing() *ring.Ring {
	if m.cfg.Shm == "" {
		return nil
	}
	r, err := ring.Open(m.ringOptions(m.cfg.Shm))
	if err != nil {
		m.report(fmt.Errorf("the ring is in plain memory, which does not outlive the process: %w", err))
		return nil
	}
	return r
}

func (m *Mover) identity() []byte {
	return []byte(m.cfg.Identity + "\x00" + m.cfg.Dir)
}

func (m *Mover) report(err error) {
	if err != nil {
		m.cfg.Diagnostics(err)
	}
}

// wake wakes the mover's goroutine.
func (m *Mover) wake() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}

// post has fn called by the mover's goroutine. It says no when that has ended.
func (m *Mover) post(fn func()) bool {
	m.inbox.Lock()
	if m.inbox.closed {
		m.inbox.Unlock()
		return false
	}
	m.inbox.calls = append(m.inbox.calls, fn)
	m.inbox.Unlock()
	m.wake()
	return true
}

// ask is post that waits until fn has been called, or ctx ends.
func (m *Mover) ask(ctx context.Context, fn func()) error {
	did := make(chan struct{})
	if !m.post(func() { fn(); close(did) }) {
		return ErrClosed
	}
	select {
	case <-did:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Mover) newSource(r *ring.Ring, own bool, o *origin) *source {
	s := &source{r: r, own: own, origin: o}
	if own {
		r.SetWake(m.wake)
	}
	return s
}

// replace puts a ring of plain memory in the place of one that failed.
func (m *Mover) replace(s *source) {
	m.swap.Lock()
	if m.cur.Load() != s || m.closed.Load() {
		m.swap.Unlock()
		return
	}
	r, err := ring.Open(m.ringOptions(""))
	if err == nil {
		n := m.newSource(r, true, &m.state.own)
		all := append(append([]*source(nil), *m.own.Load()...), n)
		m.own.Store(&all)
		m.cur.Store(n)
	}
	m.swap.Unlock()
	m.report(fmt.Errorf("the ring failed; what follows is in plain memory, which does not outlive the process: %w", s.r.Failed()))
	m.report(err)
	m.wake()
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
		if !m.post(func() { m.found(rings, spills) }) {
			closeAll(spills)
		}
	})
}
