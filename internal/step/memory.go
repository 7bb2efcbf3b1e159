// SPDX-License-Identifier: Apache-2.0

package step

import (
	"encoding/binary"
	"unsafe"
)

// A memory is what a step of one output knows of the keys of events: throttle and dedup have one.
// It has no clock but the events' own times, so it knows the same again when the same events come.
//
//	key ─► cells ─► known ┬ two spans: begun by an event, so many let pass
//	                      └ how many were left out since one passed, for `count`
//
// An event belongs to a span if it is less than its length away from the event that began it,
// before or behind; of two such spans to the one that began before it. A key has two of them, the
// one used last first: of two senders with different clocks each has its own, and late events have
// that which is over. A third one takes the place of the one used before the last: then more events
// pass than should. A time that is wrong holds back no events but those near it.
//
// The keys used last are known, up to a number; the one that was not used for longest makes room.
//
// What is known is ahead of the cursor by what is on its way to the output. So it is there twice:
//
//	let ─► known ──learnt: slots that a record has changed──► news ──settle──► kept ─► the cursor's state
//
// A slot of kept is the same key as that of known.
type memory struct {
	id      [idLen]byte // of the step: another one has another id
	maxKeys int         // keys
	length  int64       // of a span, in nanoseconds
	limit   uint32      // how many events of a span pass

	born  uint64 // the position behind which it began
	known []known
	kept  []known
	news  []news // those before head are settled
	head  int
	calls uint64

	cells       []int32 // slots + 1 by key; 0: none
	links       []link  // of known
	first, last int32   // the slots used last and longest ago
	fresh       []int32 // slots that the present record has changed

	event   uint64 // that was asked about last: it is one, however often its steps run
	passes  bool
	leftOut uint64
}

// known is what is known of a key.
type known struct {
	key     [keyLen]byte
	used    uint64 // the number of the call that used it last
	spans   [2]span
	leftOut uint64
}

// A span is a stretch of time.
type span struct {
	from   int64
	passed uint32 // 0: there is no span
}

type link struct {
	before, behind int32
	fresh          bool
}

// news is what a record has made of a slot.
type news struct {
	record uint64
	slot   int32
	is     known
}

// newsBytes is what one of them takes.
const newsBytes = int64(unsafe.Sizeof(news{}))

const (
	idLen  = 16
	keyLen = 16
	none   = -1
)

// let says whether an event passes, and how many were left out since the last one of its key.
func (m *memory) let(key *[keyLen]byte, at int64) (passes bool, leftOut uint64) {
	slot := m.use(key)
	k := &m.known[slot]
	m.calls++
	k.used = m.calls
	if l := &m.links[slot]; !l.fresh {
		l.fresh = true
		m.fresh = append(m.fresh, slot)
	}
	s := &k.spans[0]
	switch m.spanOf(k, at) {
	case 0:
	case 1:
		k.spans[0], k.spans[1] = k.spans[1], k.spans[0]
	default:
		k.spans[0], k.spans[1] = span{from: at}, k.spans[0]
	}
	if s.passed >= m.limit {
		k.leftOut++
		return false, 0
	}
	s.passed++
	leftOut, k.leftOut = k.leftOut, 0
	return true, leftOut
}

// spanOf returns which span of a key a time belongs to, or none. Spans begin at least their length
// from each other, so at most one of them began before that time, and at most one behind it.
func (m *memory) spanOf(k *known, at int64) int {
	near := none
	for i := range k.spans {
		switch d := at - k.spans[i].from; {
		case k.spans[i].passed == 0:
		case 0 <= d && d < m.length:
			return i
		case -m.length < d && d < 0:
			near = i
		}
	}
	return near
}

// use returns the slot of a key, which is the one used last then.
func (m *memory) use(key *[keyLen]byte) int32 {
	slot := m.find(key)
	switch {
	case slot == none && len(m.known) < m.maxKeys:
		slot = int32(len(m.known))
		m.add(known{key: *key})
		return slot
	case slot == none:
		slot = m.last
		m.forget(&m.known[slot].key)
		m.known[slot] = known{key: *key}
		m.enter(slot)
	}
	if slot != m.first {
		m.unlink(slot)
		m.link(slot)
	}
	return slot
}

// add takes a new slot for a key, the one used last.
func (m *memory) add(k known) {
	slot := int32(len(m.known))
	if 2*len(m.known) >= len(m.cells) {
		m.cells = make([]int32, max(64, 2*len(m.cells)))
		for i := range m.known {
			m.enter(int32(i))
		}
	}
	m.known = append(m.known, k)
	m.links = append(m.links, link{})
	m.enter(slot)
	m.link(slot)
}

func (m *memory) link(slot int32) {
	l := &m.links[slot]
	l.before, l.behind = none, m.first
	if m.first != none {
		m.links[m.first].before = slot
	} else {
		m.last = slot
	}
	m.first = slot
}

func (m *memory) unlink(slot int32) {
	l := &m.links[slot]
	if l.before != none {
		m.links[l.before].behind = l.behind
	} else {
		m.first = l.behind
	}
	if l.behind != none {
		m.links[l.behind].before = l.before
	} else {
		m.last = l.before
	}
}

// home is the cell where a key would lie if it were alone.
func (m *memory) home(key *[keyLen]byte) int {
	return int(binary.LittleEndian.Uint64(key[:]) & uint64(len(m.cells)-1))
}

// find returns the slot of a key, or none.
func (m *memory) find(key *[keyLen]byte) int32 {
	if len(m.cells) == 0 {
		return none
	}
	for i := m.home(key); m.cells[i] != 0; i = (i + 1) & (len(m.cells) - 1) {
		if slot := m.cells[i] - 1; m.known[slot].key == *key {
			return slot
		}
	}
	return none
}

// enter puts a slot into the cells.
func (m *memory) enter(slot int32) {
	i := m.home(&m.known[slot].key)
	for m.cells[i] != 0 {
		i = (i + 1) & (len(m.cells) - 1)
	}
	m.cells[i] = slot + 1
}

// forget takes a key out of the cells. Those behind it move up, so that none has a gap before it.
func (m *memory) forget(key *[keyLen]byte) {
	mask := len(m.cells) - 1
	gap := m.home(key)
	for m.known[m.cells[gap]-1].key != *key {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; m.cells[i] != 0; i = (i + 1) & mask {
		if home := m.home(&m.known[m.cells[i]-1].key); (i-home)&mask >= (i-gap)&mask {
			m.cells[gap], gap = m.cells[i], i
		}
	}
	m.cells[gap] = 0
}

// learn makes news of what a record has changed that ends here, and returns their bytes.
func (m *memory) learn(record uint64) (bytes int64) {
	if m.head > 64 && m.head >= len(m.news)/2 {
		m.news = m.news[:copy(m.news, m.news[m.head:])]
		m.head = 0
	}
	for _, slot := range m.fresh {
		m.links[slot].fresh = false
		m.news = append(m.news, news{record, slot, m.known[slot]})
	}
	bytes = newsBytes * int64(len(m.fresh))
	m.fresh = m.fresh[:0]
	return bytes
}

// keepsNews is how many news memory is kept for.
const keepsNews = 1 << 12

// settle keeps the news of the records up to one.
func (m *memory) settle(record uint64) {
	for m.head < len(m.news) && m.news[m.head].record <= record {
		w := &m.news[m.head]
		m.head++
		if int(w.slot) == len(m.kept) { // slots are new in their order
			m.kept = append(m.kept, w.is)
		} else {
			m.kept[w.slot] = w.is
		}
	}
	if m.head == len(m.news) {
		if m.news, m.head = m.news[:0], 0; cap(m.news) > keepsNews {
			m.news = nil
		}
	}
}

// begin has it know nothing, from a position on.
func (m *memory) begin(at uint64) {
	m.born, m.calls, m.event = at, 0, 0
	m.known, m.kept, m.links = m.known[:0], m.kept[:0], m.links[:0]
	m.news, m.head, m.fresh = m.news[:0], 0, m.fresh[:0]
	m.first, m.last = none, none
	clear(m.cells)
}
