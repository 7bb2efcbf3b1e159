// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"crypto/rand"
	"errors"
)

// Ring is lanes of records in one piece of memory. Its parts stand apart by what writes to them, so
// that what one goroutine writes all the time lies in no cache line that another one reads.
type Ring struct {
	// Read by every append; written seldom.
	life
	memory
	lanes
	clock clock
	_     [64]byte

	reader // the reader's
	_      [64]byte

	segments // written where a lane goes on to another segment, and where one is given back
	_        [64]byte

	retired // and what lies in the head of the memory

	home *home // set once; nil: plain memory
}

// newRing ties the parts together.
func newRing() *Ring {
	r := &Ring{}
	r.life.space = &r.segments.space
	r.lanes.life = &r.life
	r.segments.memory, r.segments.life = &r.memory, &r.life
	r.retired.memory, r.retired.life, r.retired.segments = &r.memory, &r.life, &r.segments
	m := &r.merge
	m.memory, m.life, m.clock, m.lanes, m.segments, m.retired =
		&r.memory, &r.life, &r.clock, &r.lanes, &r.segments, &r.retired
	return r
}

// Open makes a ring: a new one, whatever lies in the folder. To take over what others left there is
// [Adopt].
func Open(o *Options) (*Ring, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := newRing()
	r.clock.start()
	r.head = head{
		layout: layouts[formatVersion], version: formatVersion, size: opts.Size, unit: segmentSize(opts.Size),
		maxRec: int64(opts.MaxRecord), born: r.clock.base.UnixNano(),
	}
	_, _ = rand.Read(r.head.id[:])
	if opts.Dir == "" {
		r.mem = plainMemory(int(segmentsAt + opts.Size))
		r.head.put(r.mem)
		r.haveAll()
	} else if r.home, err = settle(&opts, r.clock.base, &r.memory, r.furnish); err != nil {
		return nil, err
	}
	r.lanes.begin(firstLanes() + reserved + 1)
	if r.backing != nil {
		r.startTender()
	}
	return r, nil
}

// Owner is what the ring's owner file says; of plain memory, nothing.
func (r *Ring) Owner() Owner {
	if r.home == nil {
		return Owner{}
	}
	return r.home.owner
}

// Anchor makes the wall time that [Now] stands for follow the system's clock, which may be set.
// Call it every second or so.
func (r *Ring) Anchor() { r.clock.anchor() }

// Horizon is a key that no record appended before the call has passed.
func (r *Ring) Horizon() uint64 { return r.clock.now() }

// Close ends the ring and removes its files. What was not read is gone, and so is all
// [Record.Data]. Later calls of Close and Leave do nothing.
func (r *Ring) Close() error { return r.end(true) }

// Leave ends the ring like Close but keeps its files, and lets go of the lock: a process may adopt
// it.
func (r *Ring) Leave() error { return r.end(false) }

func (r *Ring) end(remove bool) error {
	r.raise(overClosed)
	if r.lanes.all != nil {
		r.seal()
	}
	mem := r.notes.end()
	r.allow()
	r.ready, r.rescue = nil, &rescue{notes: &r.notes}
	if mem == nil {
		return nil
	}
	r.backing.end()
	if r.home == nil {
		return nil
	}
	return errors.Join(r.home.unmap(mem), r.home.leave(r.path, remove))
}

// begin makes a ring whose memory another process has filled ready to be read.
func (r *Ring) begin() error {
	r.clock.start()
	r.lanes.begin(reserved + 2) // none is ever used
	r.sealed = true
	r.over.Store(overClosed)
	var bad int
	if err := r.touch(func() { bad = r.load() }); err != nil {
		return err
	}
	r.badMarks = bad
	r.startAdopted()
	return nil
}
