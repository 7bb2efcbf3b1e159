// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"sync/atomic"
)

// The first version of the format, which is still read: what stands in a segment's line now stood
// in two places, each with a cache line of its own.
//
//	0          256    512        4096         8192       45056      81920         90112
//	┌──────────┬──────┬──────────┬────────────┬──────────┬──────────┬─────────────┬─────────┬─────────┬───
//	│ head     │ cuts │ counters │ 64 marks   │ state 0  │ state 1  │ table       │ segment │ segment │ …
//	└──────────┴──────┴──────────┴────────────┴──────────┴──────────┴─────────────┴─────────┴─────────┴───
//
//	table    one entry a segment, at that of a run's first: used, closed, units and records (64 bits), first key, last key. It says what was in segments
//	         that cannot be read.
//
//	segment  0      4       8       16     24       32      40      48       52      56       60   64
//	         ┌──────┬───────┬───────┬──────┬────────┬───────┬───────┬────────┬───────┬────────┬────┬──────────
//	         │ RSEG │ units │ nonce │ lane │ number │ first │ check │ filled │ count │ check  │ 0  │ records …
//	         └──────┴───────┴───────┴──────┴────────┴───────┴───────┴────────┴───────┴────────┴────┴──────────

const (
	table1       = 81920
	entryLen1    = 24
	segmentHead1 = 64
	entryUsed1   = 1 << 63
	entryClosed1 = 1 << 62
)

var layout1 = layout{states: 2 * pageSize, segments: 90112, head: segmentHead1}

// parse1 is false when there is no segment.
func (s *segmentFacts) parse1(h *head, off, room int64, b, entry []byte) bool {
	if atomic.LoadUint32(firstWord(b)) != segmentMagic || order.Uint32(b[40:]) != h.check(uint64(off), b[4:40]) {
		return false
	}
	s.units = order.Uint32(b[4:])
	s.nonce = order.Uint64(b[8:])
	s.lane = uint16(order.Uint64(b[16:]))
	s.seq = order.Uint64(b[24:])
	s.first = order.Uint64(b[32:])
	if s.units == 0 || int64(s.units) > room/h.unit {
		return false
	}
	s.last, s.filled, s.count = math.MaxUint64, 0, 0
	end := int64(order.Uint32(b[48:]))
	if end != 0 && end <= int64(s.units)*h.unit && order.Uint32(b[56:]) == h.check(s.nonce^uint64(off), b[48:56]) {
		s.filled, s.count, s.last = end, order.Uint32(b[52:]), order.Uint64(entry[16:])
	}
	return true
}

func (r *Ring) entry1(off int64) []byte {
	at := int64(table1 + entryLen1*r.head.place(off))
	return r.mem[at : at+entryLen1]
}

// lost1 is the loss of a segment whose head cannot be read. Under touch.
func (r *Ring) lost1(off int64) Loss {
	b := r.entry1(off)
	word, first, last := order.Uint64(b), order.Uint64(b[8:]), order.Uint64(b[16:])
	closed := word&entryClosed1 != 0
	if word&entryUsed1 == 0 || closed && r.isDone(first, last) {
		return Loss{}
	}
	loss := Loss{Regions: 1, Bytes: (word >> 32 & 0xffff) * uint64(r.head.unit)}
	if closed {
		loss.Records = word & (1<<32 - 1)
	}
	return loss
}
