// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"sync"
	"sync/atomic"
	"time"
)

// A shard keeps small buffers for some of the connections: at most one smallPart of the pool's
// limit, all shards together and of each size.
type shard struct {
	mu   sync.Mutex
	free [fineClass][]*Buffer
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
	large  [poolClasses - fineClass][]*Buffer
	timer  *time.Timer // of trim
	closed bool
}

const (
	poolShards = 8
	smallPart  = 4
	idleFor    = 2 * time.Second
)

// take returns a buffer of size bytes, which must be the size of a class. conn says which shard.
func (p *pool) take(size int, conn uint64) *Buffer {
	class, _ := classOf(int64(size))
	var b *Buffer
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
			p.makeRoomLocked()
		}
		p.mu.Unlock()
	}
	if b == nil {
		b = &Buffer{B: make([]byte, size)}
	}
	b.owned.Store(1)
	return b
}

func pop(list *[]*Buffer) *Buffer {
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
func (p *pool) put(b *Buffer, conn uint64) {
	size := b.Size()
	class, _ := classOf(size)
	b.since = p.tick.Load()
	if class < fineClass {
		s := &p.small[conn%poolShards]
		s.mu.Lock()
		if limit := max(p.limit/(smallPart*poolShards*size), 1); int64(len(s.free[class])) < limit {
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

// makeRoomLocked lets go of large buffers so that one of another size fits under the limit. What is
// wanted is in use already.
func (p *pool) makeRoomLocked() {
	for i := range p.large {
		for p.idle.Load()+p.used.Load() > p.limit {
			b := pop(&p.large[i])
			if b == nil {
				break
			}
			p.idle.Add(-b.Size())
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
func trimList(list *[]*Buffer, now uint32) (gone int64) {
	n := 0 // those that came back last are at the end
	for n < len(*list) && now-(*list)[n].since > 1 {
		gone += (*list)[n].Size()
		n++
	}
	switch n {
	case 0:
	case len(*list):
		*list = nil
	default:
		*list = append([]*Buffer(nil), (*list)[n:]...)
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
