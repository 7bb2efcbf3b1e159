// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"math/bits"
	"reflect"
	"sync/atomic"
)

// slab is memory for chunks and their items. Small chunks share one that fills; a large one has its
// own.
//
//	got ──► filled ──► the last item dropped, and released by all ──► idle ──► got again, or given back
type slab struct {
	owner *recent
	class class
	buf   []byte
	items []item
	refs  atomic.Int32 // one of the owner until it drops the last item, and one for each get

	// Guarded by the owner's lock. Until its chunk can be found, a slab of one belongs to the put
	// that got it.
	used  int    // of buf
	taken int    // of items
	kept  int    // items that can be found
	since uint32 // when it became idle
	which int    // stored that it is for
	link  *slab  // the next one of the same put
}

// fits tells whether a chunk of n bytes does.
func (s *slab) fits(n int) bool { return s.used+n <= len(s.buf) && s.taken < len(s.items) }

// take returns an item and n bytes for it, which fit.
func (s *slab) take(n int) (*item, []byte) {
	it := &s.items[s.taken]
	it.slab = s
	room := s.buf[s.used : s.used+n : s.used+n]
	s.taken++
	s.used += n
	return it, room
}

// class is a size of slabs.
type class struct{ list, bytes, items int }

var (
	itemBytes = int64(reflect.TypeFor[item]().Size())
	slabHead  = int64(reflect.TypeFor[slab]().Size())
)

// cost is what a slab of the class takes.
func (c class) cost() int64 { return int64(c.bytes) + int64(c.items)*itemBytes + slabHead }

// classOf is the class for one chunk of n bytes: there are eight to a doubling.
func classOf(n int) class {
	n = max(n-1, 16)
	shift := bits.Len(uint(n)) - 4
	steps := n>>shift + 1 // 9 to 16
	return class{list: 8*shift + steps - 8, bytes: steps << shift, items: 1}
}

// slabs hands out slabs, and knows what all of them take.
type slabs struct {
	limit  int64
	fill   class // of those that small chunks share
	poison bool  // what is taken back is overwritten

	memory int64          // of all slabs, used and idle, and of what the owner adds
	idle   int64          // of those in spare
	spare  [lists][]*slab // by class, the one that came back last at the end
	tick   uint32         // trims
}

const (
	slabBytes = 64 << 10 // that small chunks share, unless all is tiny
	lists     = 8 * 64
)

func (m *slabs) init(limit int64, poison bool) {
	n := int(min(slabBytes, limit/32))
	m.limit, m.poison, m.fill = limit, poison, class{0, n, max(n/256, 1)}
}

// small tells whether a chunk of n bytes shares a slab.
func (m *slabs) small(n int) bool { return n <= m.fill.bytes/16 }

// get returns an empty slab; nil if that would be too much memory.
func (m *slabs) get(c class, owner *recent) *slab {
	s := m.reuse(c.list)
	if s == nil {
		for m.memory+c.cost() > m.limit {
			if m.idle == 0 {
				return nil
			}
			m.giveBack()
		}
		m.memory += c.cost()
		s = &slab{owner: owner, class: c, buf: make([]byte, c.bytes), items: make([]item, c.items)}
	}
	s.refs.Store(1)
	return s
}

// reuse returns a spare slab of the class, nil if there is none.
func (m *slabs) reuse(list int) *slab {
	spare := m.spare[list]
	if len(spare) == 0 {
		return nil
	}
	s := spare[len(spare)-1]
	spare[len(spare)-1] = nil
	m.spare[list] = spare[:len(spare)-1]
	m.idle -= s.class.cost()
	return s
}

// put takes back a slab to which nothing refers.
func (m *slabs) put(s *slab) {
	if m.poison {
		for i := range s.buf[:s.used] {
			s.buf[i] = 0xc1 // which no MessagePack has
		}
	}
	clear(s.items[:s.taken]) // tags
	s.used, s.taken, s.since = 0, 0, m.tick
	m.spare[s.class.list] = append(m.spare[s.class.list], s)
	m.idle += s.class.cost()
}

// giveBack lets one spare slab go, a large one rather.
func (m *slabs) giveBack() {
	for list := len(m.spare) - 1; list >= 0; list-- {
		if s := m.reuse(list); s != nil {
			m.memory -= s.class.cost()
			return
		}
	}
}

// trim lets go of what came back before trim was called last.
func (m *slabs) trim() {
	for i, spare := range m.spare {
		n := 0
		for n < len(spare) && spare[n].since != m.tick {
			m.memory -= spare[n].class.cost()
			m.idle -= spare[n].class.cost()
			n++
		}
		if n > 0 {
			m.spare[i] = append([]*slab(nil), spare[n:]...)
		}
	}
	m.tick++
}
