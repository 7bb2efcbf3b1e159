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
	entryUsed1   = 1 << 63
	entryClosed1 = 1 << 62
)

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
