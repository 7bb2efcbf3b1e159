// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of buffers.
const (
	parkedBuffer = 4 << 10   // of a connection that has sent the beginning of a message and then nothing
	baseBuffer   = 128 << 10 // of a connection that sends: room for a read behind what the last one left over
	readSize     = 64 << 10  // of one read, where it is not known how much will come
	keptBuffer   = 1 << 20   // what a group may gather besides its buffer before it is handed on
	startBuffer  = 16 << 20  // up to this size a connection begins with the size that its last messages needed
)

// A buffer is bytes from a pool. Whoever takes it owns it; a parcel (async.go) may share it.
type buffer struct {
	b     []byte
	owned atomic.Int32 // by its owner and the parcels that share it; at 0 it goes back
	since uint32       // the tick of the pool at which it came back
}

func (b *buffer) size() int64 { return int64(len(b.b)) }

// shared tells its owner whether anybody else looks at it: then its bytes stay where they are.
func (b *buffer) shared() bool { return b.owned.Load() > 1 }

// Classes of sizes: powers of two from parkedBuffer to baseBuffer, then eight to a doubling, so
// that a buffer is at most an eighth larger than asked for, and one of a message that all but fits
// into a power of two is not twice that.
const (
	parkedBits  = 12
	baseBits    = 17
	fineSteps   = 8
	fineBits    = 3
	fineClass   = baseBits - parkedBits + 1 // the first beyond baseBuffer
	poolClasses = fineClass + (largestBits-baseBits)*fineSteps
	largestBits = 31
)

// classOf returns the class of the smallest buffer that holds n bytes, and its size.
func classOf(n int64) (class int, size int64) {
	if n <= parkedBuffer {
		return 0, parkedBuffer
	}
	k := bits.Len64(uint64(n - 1)) // 2^(k-1) < n <= 2^k
	if k <= baseBits {
		return k - parkedBits, 1 << k
	}
	step := int64(1) << (k - 1 - fineBits)
	steps := (n - int64(1)<<(k-1) + step - 1) / step
	return fineClass + (k-1-baseBits)*fineSteps + int(steps) - 1, int64(1)<<(k-1) + steps*step
}

// bufferSize returns the size of the buffer that holds n bytes.
func bufferSize(n int64) int {
	_, size := classOf(n)
	return int(size)
}

// A shard keeps small buffers for some of the connections: at most one smallPart of the pool's
// limit, all shards together and of each size.
type shard struct {
	mu   sync.Mutex
	free [fineClass][]*buffer
	_    [64]byte // what other cores write stands on other cache lines
}

// A pool keeps buffers for their next use, by size. What it keeps of large ones and what is in use
// stay together within a limit: beyond it a buffer that comes back goes to the garbage collector,
// and so do those of other sizes when one is wanted that is not there. What nobody wanted for
// idleFor goes too.
//
// Small buffers, which every read of an idle connection takes and gives back, have lists of their
// own in several shards, and nothing that all cores would write; large ones share one lock: it is
// held for a few instructions, once in some hundred microseconds of work on the bytes.
//
// Lock order: pool locks are taken last.
type pool struct {
	limit   int64
	used    *atomic.Int64 // what is in use
	idle    atomic.Int64  // bytes kept of large ones
	tick    atomic.Uint32 // how often trim has looked
	ticking atomic.Bool   // it will look again; written with mu held

	small  [poolShards]shard
	mu     sync.Mutex
	large  [poolClasses - fineClass][]*buffer
	timer  *time.Timer // of trim
	closed bool
}

const (
	poolShards = 8
	smallPart  = 4
	idleFor    = 2 * time.Second
)

// take returns a buffer of size bytes, which must be the size of a class. conn says which shard.
func (p *pool) take(size int, conn uint64) *buffer {
	class, _ := classOf(int64(size))
	var b *buffer
	if class < fineClass {
		s := &p.small[conn%poolShards]
		s.mu.Lock()
		b = pop(&s.free[class])
		s.mu.Unlock()
	} else {
		p.mu.Lock()
		if b = pop(&p.large[class-fineClass]); b != nil {
			p.idle.Add(-int64(size))
		} else {
			p.makeRoom()
		}
		p.mu.Unlock()
	}
	if b == nil {
		b = &buffer{b: make([]byte, size)}
	}
	b.owned.Store(1)
	return b
}

func pop(list *[]*buffer) *buffer {
	n := len(*list)
	if n == 0 {
		return nil
	}
	b := (*list)[n-1]
	(*list)[n-1] = nil
	*list = (*list)[:n-1]
	return b
}

// put gives a buffer back that nobody holds any more, but that still counts as in use.
func (p *pool) put(b *buffer, conn uint64) {
	size := b.size()
	class, _ := classOf(size)
	b.since = p.tick.Load()
	if class < fineClass {
		s := &p.small[conn%poolShards]
		s.mu.Lock()
		if most := max(p.limit/(smallPart*poolShards*size), 1); int64(len(s.free[class])) < most {
			s.free[class] = append(s.free[class], b)
		}
		s.mu.Unlock()
	} else {
		if p.idle.Add(size)+p.used.Load()-size > p.limit {
			p.idle.Add(-size)
			return
		}
		p.mu.Lock()
		p.large[class-fineClass] = append(p.large[class-fineClass], b)
		p.mu.Unlock()
	}
	if !p.ticking.Load() {
		p.watch()
	}
}

// watch sees to it that trim looks.
func (p *pool) watch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.ticking.Load() {
		return
	}
	p.ticking.Store(true)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleFor, p.trim)
	} else {
		p.timer.Reset(idleFor)
	}
}

// makeRoom lets go of large buffers so that one of another size fits under the limit. What is
// wanted is in use already. With mu held.
func (p *pool) makeRoom() {
	for i := range p.large {
		for p.idle.Load()+p.used.Load() > p.limit {
			b := pop(&p.large[i])
			if b == nil {
				break
			}
			p.idle.Add(-b.size())
		}
	}
}

// trim lets go of the buffers that were not wanted since it looked before, and comes again while
// there are any.
func (p *pool) trim() {
	now := p.tick.Add(1)
	left := 0
	for i := range p.small {
		s := &p.small[i]
		s.mu.Lock()
		for class := range s.free {
			trimList(&s.free[class], now)
			left += len(s.free[class])
		}
		s.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.large {
		p.idle.Add(-trimList(&p.large[i], now))
		left += len(p.large[i])
	}
	if left > 0 && !p.closed {
		p.timer.Reset(idleFor)
	} else {
		p.ticking.Store(false)
	}
}

// trimList returns how many bytes it has let go.
func trimList(list *[]*buffer, now uint32) (gone int64) {
	n := 0 // those that came back last are at the end
	for n < len(*list) && now-(*list)[n].since > 1 {
		gone += (*list)[n].size()
		n++
	}
	switch n {
	case 0:
	case len(*list):
		*list = nil
	default:
		*list = append([]*buffer(nil), (*list)[n:]...)
	}
	return gone
}

// close stops trim. What is kept goes with the server.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
