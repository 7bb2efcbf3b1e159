// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"sync/atomic"
	"time"
)

// A ring's file has its full length from the start, and memory only where it was needed: a thousand
// loggers that say little must not take a thousand times the size of a ring. Memory comes block by
// block. A block belongs to one segment, and whoever has taken that segment gives memory to its blocks:
// an appender when its lane gets there, or the reader ahead of the appenders. The reader takes memory
// back from free segments, which it takes for as long as that lasts. Nothing is ever unmapped, so
// nobody can meet a block that goes away.

// errNoMemory says that the file system has no memory for a block.
var errNoMemory = errors.New("ring: no memory for a block")

const (
	blockSize    = 64 << 10
	firstBlocks  = 2       // that a ring has from the start
	mostAhead    = 4 << 20 // bytes that the reader has ready for appenders
	keepFree     = 512 << 10
	trimEvery    = uint64(10 * time.Second)
	retryNoBlock = uint64(100 * time.Millisecond)
)

// blocks says which blocks have memory.
type blocks struct {
	mem    []byte
	size   int64           // of a block: no larger than a segment
	there  []atomic.Uint64 // a bit a block
	count  atomic.Int64    // of these bits
	begged atomic.Bool     // an appender had to get memory itself
	dryTo  atomic.Uint64   // the clock until which no appender asks again, since there was no memory
	most   atomic.Int64    // bytes of segments, as there was no memory for more; 0: all

	// The reader's.
	ahead  int64  // bytes of free segments that are to have memory
	peak   int64  // most bytes in use since trimAt was set
	trimAt uint64 // the clock from which on memory may be taken back
	every  uint64 // trimEvery
}

func newBlocks(mem []byte, unit int64) *blocks {
	k := &blocks{mem: mem, size: min(unit, blockSize), every: trimEvery}
	k.there = make([]atomic.Uint64, (k.number(int64(len(mem)))+63)/64)
	return k
}

// number is that of the block at an offset of the ring's memory.
func (k *blocks) number(off int64) int64 { return (off - segmentsAt) / k.size }

func (k *blocks) has(i int64) bool { return k.there[i/64].Load()>>(i%64)&1 != 0 }

// give gives memory to the blocks of a range that have none, and says how many these were. The segments
// of the range are the caller's.
func (k *blocks) give(from, to int64) (n int, err error) {
	for i := k.number(from); i <= k.number(to-1); i++ {
		if k.has(i) {
			continue
		}
		at := segmentsAt + i*k.size
		if err := populate(k.mem[at : at+k.size]); err != nil {
			return n, err
		}
		k.there[i/64].Or(1 << (i % 64))
		k.count.Add(1)
		n++
	}
	return n, nil
}

// end is where the blocks end that have memory from off on, at most limit.
func (k *blocks) end(off, limit int64) int64 {
	for i := k.number(off - 1); ; i++ {
		at := segmentsAt + i*k.size
		if at >= limit || !k.has(i) {
			return min(at, limit)
		}
	}
}

// takeBack takes the memory of a range of segments, which are the caller's.
func (k *blocks) takeBack(from, to int64) error {
	if err := punch(k.mem[from:to]); err != nil {
		return err
	}
	for i := k.number(from); i <= k.number(to-1); i++ {
		if k.there[i/64].And(^(1<<(i%64)))>>(i%64)&1 != 0 {
			k.count.Add(-1)
		}
	}
	return nil
}

// extend gives a lane the next block of its segment. The lane is the caller's.
func (r *Ring) extend(l *lane, tail, need int64, now uint64) bool {
	s := r.segment(l.seg)
	if s == nil || tail+need > s.limit || !r.giveTo(tail, tail+need, now) {
		return false
	}
	l.limit = r.blocks.end(tail+need, s.limit)
	return true
}

// giveTo is give for an appender.
func (r *Ring) giveTo(from, to int64, now uint64) bool {
	k := r.blocks
	if k.end(from+1, to) >= to {
		return true
	}
	if now < k.dryTo.Load() {
		return false
	}
	if _, err := k.give(from, to); err != nil {
		k.dryTo.Store(now + retryNoBlock)
		k.most.Store(max(k.count.Load()*k.size, 1))
		return false
	}
	k.begged.Store(true)
	if k.most.Load() != 0 {
		k.most.Store(0)
		r.mu.Lock()
		r.allow()
		r.mu.Unlock()
	}
	return true
}

// mayRetry says that there was no memory, and that it is time to ask again.
func (k *blocks) mayRetry(now uint64) bool {
	dry := k.dryTo.Load()
	return dry != 0 && now >= dry
}

// refuseUntilRoom has appenders refused without a look until there may be memory again: when a segment
// is given back, or when it is time to ask again.
func (r *Ring) refuseUntilRoom() {
	r.mu.Lock()
	r.full.Store(true)
	first := r.room == nil
	if first {
		r.room = make(chan struct{})
	}
	r.mu.Unlock()
	r.sweepNow.Store(true)
	if first {
		r.callWake()
	}
}

// takeFor takes a segment, or a run of them, that has memory for so many bytes: the first that is free,
// or where there is no memory for that, one that has it already.
func (r *Ring) takeFor(units, stay int, bytes int64, now uint64) (at int, err error) {
	at = r.pool.take(units, stay)
	if at < 0 {
		if at, err = r.refuse(units, stay); at < 0 {
			return -1, err
		}
	}
	if r.blocks == nil {
		return at, nil
	}
	off := segmentsAt + int64(at)*r.head.unit
	if r.giveTo(off, off+bytes, now) {
		return at, nil
	}
	r.pool.put(at, units)
	if units == 1 {
		for at := range r.pool.n {
			off := segmentsAt + int64(at)*r.head.unit
			if r.pool.isFree(at) && r.blocks.end(off+1, off+bytes) >= off+bytes && r.pool.takeAt(at, stay) {
				if r.blocks.end(off+1, off+bytes) >= off+bytes { // still
					return at, nil
				}
				r.pool.put(at, 1)
			}
		}
	}
	if err := r.fileGone(); err != nil {
		return -1, r.fail(err)
	}
	r.refuseUntilRoom()
	return -1, ErrFull
}

// tend has memory ready for appenders, and takes back what has not been in use for long: of an idle ring
// all but little. The reader does that.
func (r *Ring) tend(now uint64, idle bool) {
	k := r.blocks
	if k == nil {
		return
	}
	if k.mayRetry(now) {
		k.dryTo.Store(0)
		r.mu.Lock()
		r.allow()
		r.mu.Unlock()
	}
	used := r.used()
	k.peak = max(k.peak, used)
	if k.begged.Swap(false) {
		k.ahead = min(max(2*k.ahead, 4*k.size), mostAhead, r.head.size/4)
		k.trimAt = now + k.every
	}
	if k.ahead > 0 {
		r.prepare(k.ahead)
	}
	if now < k.trimAt {
		return
	}
	keep := int64(keepFree)
	if !idle {
		keep = max(2*k.peak, keep)
		k.trimAt = now + k.every
	}
	k.ahead, k.peak = 0, used
	r.trim(keep)
}

// prepare gives memory to free segments, those that are taken next, until so many bytes of them have it.
func (r *Ring) prepare(bytes int64) {
	k, unit := r.blocks, r.head.unit
	for at := 0; at < r.pool.n && bytes > 0; at++ {
		if !r.pool.isFree(at) {
			continue
		}
		off := segmentsAt + int64(at)*unit
		if k.end(off+1, off+unit) < off+unit {
			if !r.pool.takeAt(at, r.pool.n/4) {
				continue
			}
			_, err := k.give(off, off+unit)
			r.pool.put(at, 1)
			if err != nil {
				return
			}
		}
		bytes -= unit
	}
}

// trim takes memory from free segments, those that are taken last, until no more than keep is left.
func (r *Ring) trim(keep int64) {
	k, unit := r.blocks, r.head.unit
	for at := r.pool.n - 1; at >= 0 && k.count.Load()*k.size > keep; at-- {
		off := segmentsAt + int64(at)*unit
		if !r.pool.isFree(at) || k.none(off, off+unit) || !r.pool.takeAt(at, r.pool.n/4) {
			continue
		}
		err := k.takeBack(off, off+unit)
		r.pool.put(at, 1)
		if err != nil {
			return
		}
	}
}

// none says that no block of a range has memory.
func (k *blocks) none(from, to int64) bool {
	for i := k.number(from); i <= k.number(to-1); i++ {
		if k.has(i) {
			return false
		}
	}
	return true
}
