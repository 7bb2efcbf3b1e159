// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spillwaylog/spillway/journal"
)

// recent is the chunks that came in last, as they were checked and decompressed at the input.
// A follower that keeps up takes them from here, and reads the disk only when it
// has fallen behind.
//
//	journal   ──┬────────┬────────┬────────┬────────┬──► positions
//	            │ chunk  │ chunk  │ chunk  │ chunk  │
//	            └────────┴────────┴────────┴────────┘
//	          prev      pos                          head
//	                     ▲                  ▲
//	                    reader             reader           each of one that follows
//	             ├────────── kept ──────────┤
//
// A chunk is found by where its record begins to be read: the end of the record before it, as
// Journal.AppendAfter tells it. So it does not matter in which order the inputs put chunks in after
// the journal has taken them, and what was left out is a gap that is read from the disk.
//
// It costs nothing when it is of no use: what no reader is near to is not copied, what all that are
// near have passed goes at once, so that the memory used is what was touched last.
//
// Memory is slabs, each counted once, used or idle, and never more than the limit. Small chunks
// share one; a large one has its own. References are counted by slab: taking a chunk is one atomic
// addition, and nothing is freed chunk by chunk.
type recent struct {
	limit    int64 // bytes of slabs and of index and queue
	maxItems int   // items

	following atomic.Int32 // readers; written with mu held

	mu         sync.Mutex
	readers    []*recentReader
	wanted     wants       // by any of them
	total      int64       // bytes that came, kept or not
	head       milestone   // the furthest record that came
	milestones []milestone // oldest first; the first is about limit ago, or where the first record began
	index      []*item     // hash of prev → items with that hash
	queue      []*item     // kept, a ring in the order in which they came
	first      int         // in queue
	kept       int         // of queue
	slabs      slabs
	filling    *slab // small chunks go there
	stats      recentStats
}

// milestone says how much had come when the journal's head was there.
type milestone struct {
	at    journal.Position
	total int64
}

const (
	recentBytes   = 16 << 20
	maxMilestones = 64 // within the limit
)

// recentOptions says how much is kept. The zero value works.
type recentOptions struct {
	bytes  int64 // of memory; 16 MiB
	items  int   // chunks; one for each 512 bytes
	poison bool  // for tests: what is freed is overwritten
}

func newRecent(o recentOptions) *recent {
	o.bytes = cmp.Or(o.bytes, recentBytes)
	o.items = cmp.Or(o.items, int(o.bytes/512))
	r := &recent{limit: o.bytes, maxItems: max(o.items, 1)}
	r.slabs.init(o.bytes, o.poison)
	return r
}

// recentReader is how far a follower has come.
type recentReader struct {
	recent *recent
	wants  wants
	at     journal.Position
}

// wants is what is looked at of chunks: entries, or the body as it came. Of chunks that came
// uncompressed these are the same.
type wants uint8

const (
	wantEntries wants = 1 << iota
	wantBody
)

// follow adds a reader. Its owner calls get for each record, also for those that it then reads
// from the disk, or nothing is kept for it.
func (r *recent) follow(at journal.Position, w wants) *recentReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.readers) == 0 { // what came meanwhile was not counted
		r.milestones, r.head = r.milestones[:0], milestone{}
	}
	p := &recentReader{recent: r, at: at, wants: w}
	r.readers = append(r.readers, p)
	r.changedLocked()
	return p
}

// leave takes the reader away. Chunks that it got stay until they are released.
func (p *recentReader) leave() {
	r := p.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers = slices.DeleteFunc(r.readers, func(q *recentReader) bool { return q == p })
	r.changedLocked()
}

// changedLocked: a reader came or went.
func (r *recent) changedLocked() {
	r.wanted = 0
	for _, p := range r.readers {
		r.wanted |= p.wants
	}
	if r.wanted == 0 {
		r.following.Store(0)
		r.dropLocked(r.kept)
		if s := r.filling; s != nil {
			r.filling = nil
			r.unrefLocked(s)
		}
		return
	}
	r.following.Store(int32(len(r.readers)))
}

// get returns the chunk whose record follows directly behind after, unless it ends beyond durable,
// which is Journal.Synced. The caller releases it. It is false where the chunk is not kept: then it
// must be read from the journal, if it has one.
func (p *recentReader) get(after, durable journal.Position) (*item, bool) {
	r := p.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	p.at = after
	it := r.findLocked(after)
	switch {
	case it != nil && it.pos > durable:
		return nil, false
	case it == nil || p.wants&^it.has != 0:
		if after < durable {
			r.stats.Misses++
		}
		return nil, false
	}
	r.stats.Hits++
	it.retain()
	return it, true
}

// put copies chunks of one connection, in their order, if that is of use to a follower. Many may
// call it at once, before or after the records are durable.
func (r *recent) put(group []stored) {
	if r.following.Load() == 0 || len(group) == 0 {
		return
	}
	r.mu.Lock()
	if len(r.milestones) == 0 { // how far a reader is behind that is not known
		r.milestones = append(r.milestones, milestone{group[0].prev, r.total})
	}
	passed, near := r.nearLocked()
	if near {
		r.makeIndexLocked()
		r.dropPassedLocked(passed)
	}
	var own *slab
	last, w := &own, r.wanted
	for i := range group {
		a := &group[i]
		n := a.room(w)
		r.countLocked(a.pos, n)
		switch {
		case !near || a.pos <= passed:
		case r.slabs.small(n):
			if s := r.fillingLocked(n); s != nil {
				it, room := s.take(n)
				it.fill(a, w, room)
				r.keepLocked(it)
			}
		default:
			if s := r.ownLocked(n); s != nil {
				s.which = i
				*last, last = s, &s.link
			}
		}
	}
	r.mu.Unlock()
	if own == nil {
		return
	}
	for s := own; s != nil; s = s.link { // without the lock: that takes a while
		a := &group[s.which]
		it, room := s.take(a.room(w))
		it.fill(a, w, room)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := own; s != nil; {
		s, own = s.link, s
		own.link = nil
		if r.wanted == 0 {
			r.unrefLocked(own) // all left meanwhile
			continue
		}
		r.keepLocked(&own.items[0])
	}
}

// nearLocked tells whether a reader is near, and up to where all that are have come.
func (r *recent) nearLocked() (passed journal.Position, near bool) {
	passed = ^journal.Position(0)
	for _, p := range r.readers {
		// Not more came since it was the head than can be kept.
		if p.wants != 0 && p.at >= r.milestones[0].at {
			passed, near = min(passed, p.at), true
		}
	}
	return passed, near
}

// countLocked notes that a chunk of n bytes came.
func (r *recent) countLocked(pos journal.Position, n int) {
	r.total += int64(n) + itemBytes
	r.head = milestone{max(r.head.at, pos), r.total}
	if r.total-r.milestones[len(r.milestones)-1].total < r.limit/maxMilestones {
		return
	}
	old := 0
	for old+1 < len(r.milestones) && r.total-r.milestones[old+1].total >= r.limit {
		old++
	}
	r.milestones = append(r.milestones[:copy(r.milestones, r.milestones[old:])], r.head)
}

// fillingLocked returns the slab for small chunks with room for one more; nil if there is none.
func (r *recent) fillingLocked(n int) *slab {
	s := r.filling
	if s != nil && s.fits(n) {
		return s
	}
	r.filling = nil
	if s != nil && s.kept == 0 {
		r.unrefLocked(s)
	}
	// What is dropped for it is no longer in a slab that fills.
	r.filling = r.slabLocked(r.slabs.fill)
	return r.filling
}

// ownLocked returns a slab for one large chunk; nil if there is none.
func (r *recent) ownLocked(n int) *slab {
	c := classOf(n)
	if int64(c.bytes) > r.limit/4 {
		r.stats.Refused++
		return nil
	}
	return r.slabLocked(c)
}

// slabLocked returns a slab, for which it drops what came first if need be; nil if those that
// follow hold too much.
func (r *recent) slabLocked(c class) *slab {
	for {
		if s := r.slabs.get(c, r); s != nil {
			return s
		}
		if r.kept == 0 {
			r.stats.Refused++
			return nil
		}
		r.dropLocked(1)
	}
}

func (r *recent) unrefLocked(s *slab) {
	if s.refs.Add(-1) == 0 {
		r.slabs.put(s)
	}
}

// makeIndexLocked makes what items are found by, once a follower is near.
func (r *recent) makeIndexLocked() {
	if r.index == nil {
		n := 1 << bits.Len(uint(r.maxItems-1))
		r.index, r.queue = make([]*item, n), make([]*item, n)
		r.slabs.memory += 2 * int64(n) * bits.UintSize / 8
	}
}

// keepLocked makes a filled item findable.
func (r *recent) keepLocked(it *item) {
	if r.kept == r.maxItems {
		r.dropLocked(1)
	}
	it.slab.kept++
	b := r.bucket(it.prev)
	it.next, *b = *b, it
	r.queue[(r.first+r.kept)&(len(r.queue)-1)] = it
	r.kept++
}

// bucket is where a position's chunk is looked for.
func (r *recent) bucket(prev journal.Position) **item {
	return &r.index[(uint64(prev)*0x9e3779b97f4a7c15>>32)&uint64(len(r.index)-1)]
}

func (r *recent) findLocked(after journal.Position) *item {
	if r.index == nil {
		return nil
	}
	it := *r.bucket(after)
	for it != nil && it.prev != after {
		it = it.next
	}
	return it
}

// dropPassedLocked lets go of what all that are near have passed.
func (r *recent) dropPassedLocked(passed journal.Position) {
	for r.kept > 0 && r.queue[r.first].pos <= passed {
		r.dropLocked(1)
	}
}

// dropLocked lets go of the n items that came first.
func (r *recent) dropLocked(n int) {
	for range n {
		it := r.queue[r.first]
		r.queue[r.first] = nil
		r.first = (r.first + 1) & (len(r.queue) - 1)
		r.kept--
		b := r.bucket(it.prev)
		for *b != it {
			b = &(*b).next
		}
		*b = it.next
		s := it.slab
		if s.kept--; s.kept == 0 && s != r.filling {
			r.unrefLocked(s)
		}
	}
}

// trim gives back memory that was not wanted since trim was called before. It is called every few
// seconds.
func (r *recent) trim() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slabs.trim()
}

// recentStats counts what became of chunks.
type recentStats struct {
	Hits, Misses uint64 // of get; misses where something durable lies behind, if only padding
	Refused      uint64 // chunks for which there was no room: they are too large, or those that follow hold all of it
}
