// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Ring is lanes of records in one piece of memory.
type Ring struct {
	// Read by every append; written seldom.
	lanes   *[maxLanes]lane
	mem     []byte
	head    head
	maxRec  int
	shared  bool // the memory is a mapping, and may go
	adopted bool
	over    atomic.Uint32 // why there are no appends any more; 0 while there are
	asleep  atomic.Uint32 // the reader wants to be woken; written by the reader, and by the appender that wakes it
	active  atomic.Uint32 // lanes that can be reached; only grows
	sawBusy atomic.Uint32 // the reader went to sleep while a lane was busy
	wake    atomic.Pointer[func()]
	failure atomic.Pointer[error]
	clock   clock

	turn atomic.Uint32 // spreads appenders without a hint over the lanes
	_    [64]byte

	// The reader's.
	follow        [maxLanes]follower
	ready         []uint16 // lanes with something to be read
	bound         uint64   // what has a lower key has all been seen
	previous      uint64   // the clock when all lanes were last looked at
	returned      uint64   // by Next
	returnedBytes uint64
	rescue        *rescue
	looked        atomic.Uint64
	sweepDue      atomic.Bool // lanes may hold what is done
	sweepNow      atomic.Bool // and somebody waits for room
	sweepNext     uint64
	_             [64]byte

	// Written where a lane goes on to another segment, and where one is given back.
	pool     *pool // of a ring that takes appends
	seq      atomic.Uint64
	full     atomic.Bool  // not one segment is free but the reserve; written under mu
	pressure atomic.Int64 // the reader's
	pressed  atomic.Bool
	left     atomic.Int64 // segments in an adopted ring
	_        [64]byte

	mu       sync.Mutex    // guards all below; a leaf: nobody who has it waits for anything
	found    []*segment    // of an adopted ring, as they were left
	held     []*segment    // read, closed, not done
	room     chan struct{} // closed when room comes; nil: nobody was refused since
	nudge    bool          // the reader is to be woken once mu is free
	sealed   bool
	cut      uint64
	cutCell  int
	marks    [MaxMarks]Mark
	marked   [MaxMarks]bool
	nmarks   int
	state    []byte
	stateSeq uint64
	counters [Counters]uint64
	badMarks int // slots of the table that cannot be read

	// Set once.
	path  string
	owner Owner
	home  *home // nil: plain memory
	// What the file has been given of its memory; nil: all.
	backing *backing
}

// Open makes a ring: a new one, whatever lies in the folder. To take over what others left there is
// [Adopt].
func Open(o *Options) (*Ring, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Ring{maxRec: opts.MaxRecord}
	r.clock.start()
	r.head = head{layout: layouts[formatVersion], version: formatVersion, size: opts.Size, unit: segmentSize(opts.Size), maxRec: int64(opts.MaxRecord), born: r.clock.base.UnixNano()}
	_, _ = rand.Read(r.head.id[:])
	r.pool = newPool(int(opts.Size / r.head.unit))
	if opts.Dir == "" {
		r.mem = plainMemory(int(segmentsAt + opts.Size))
		r.head.put(r.mem)
		r.haveAll()
	} else if err := r.settleIn(&opts); err != nil {
		return nil, err
	}
	r.lanes = newLanes()
	n := firstLanes() + reserved + 1
	r.lanes[0].state.Store(busy)
	for i := n; i < maxLanes; i++ {
		r.lanes[i].state.Store(busy)
	}
	r.active.Store(uint32(n))
	if r.backing != nil {
		r.startTender()
	}
	return r, nil
}

// haveAll makes all segments free: they have memory.
func (r *Ring) haveAll() {
	at, k := r.pool.takeFresh(r.pool.n)
	for i := at; i < at+k; i++ {
		r.pool.segments[i].has(r.head.unit)
	}
	r.pool.put(at, k)
}

// plainMemory is zero and aligned for 64-bit words.
func plainMemory(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// Size is the bytes of all segments that others than AppendReserved can have: fewer than
// [Options.Size] while the file system has no room for more.
func (r *Ring) Size() int64 {
	if r.backing == nil || r.pool == nil {
		return r.head.size
	}
	more := r.backing.room.Load() / r.head.unit
	if r.backing.short.Load() {
		more = 0
	}
	if away := r.pool.away.Load(); more < away {
		return max(int64(r.pool.n)-away+more-1, 1) * r.head.unit
	}
	return r.head.size
}

// Path is the ring's folder, empty for plain memory.
func (r *Ring) Path() string { return r.path }

// Owner is what the ring's owner file says; of plain memory, nothing.
func (r *Ring) Owner() Owner { return r.owner }

// Close ends the ring and removes its files. What was not read is gone, and so is all
// [Record.Data]. Later calls of Close and Leave do nothing.
func (r *Ring) Close() error { return r.end(true) }

// Leave ends the ring like Close but keeps its files, and lets go of the lock: somebody may adopt
// it.
func (r *Ring) Leave() error { return r.end(false) }

func (r *Ring) end(remove bool) error {
	r.raise(overClosed)
	if r.lanes != nil {
		r.seal()
	}
	r.mu.Lock()
	mem := r.mem
	r.mem = nil
	r.allow()
	r.mu.Unlock()
	r.ready, r.rescue = nil, &rescue{ring: r}
	if mem == nil {
		return nil
	}
	r.backing.end()
	if r.home == nil {
		return nil
	}
	return errors.Join(r.home.unmap(mem), r.home.leave(r.path, remove))
}

// begin makes a ring whose memory somebody else has filled ready to be read.
func (r *Ring) begin() error {
	r.maxRec = int(r.head.maxRec)
	r.clock.start()
	r.lanes = newLanes()
	r.sealed = true
	r.over.Store(overClosed)
	r.lanes[0].state.Store(busy)
	r.active.Store(reserved + 2) // nobody gets to use one
	var bad int
	if err := r.touch(func() { bad = r.load() }); err != nil {
		return err
	}
	r.badMarks = bad
	r.startAdopted()
	return nil
}
