// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"hash/maphash"
	"log/slog"
	"math"
	"sync/atomic"
	"time"
)

// A sampler thins out the events of some levels.
type sampler struct {
	seed   maphash.Seed
	levels map[slog.Level]*sampling // not changed after it is made
}

// A sampling counts the messages of one level.
type sampling struct {
	first, thereafter uint64
	every             time.Duration
	since             time.Time
	slots             [1 << 12]slot
}

// A slot counts the messages of one hash. Every caller writes it; that two of them begin an
// interval at once may let a few events more through.
type slot struct {
	ends atomic.Int64 // when its interval does, after since
	n    atomic.Uint64
}

func newSampler(m map[slog.Level]Sampling) *sampler {
	if len(m) == 0 {
		return nil
	}
	s := &sampler{seed: maphash.MakeSeed(), levels: map[slog.Level]*sampling{}}
	for level, o := range m {
		if o.Every == 0 {
			o.Every = time.Second
		}
		s.levels[level] = &sampling{
			first: uint64(o.First), thereafter: uint64(o.Thereafter), every: o.Every, since: time.Now(),
		}
	}
	return s
}

// pass reports whether an event is to be logged.
func (s *sampler) pass(level slog.Level, msg string) bool {
	l := s.levels[level]
	if l == nil {
		return true
	}
	c := &l.slots[maphash.String(s.seed, msg)%uint64(len(l.slots))]
	now := int64(time.Since(l.since))
	if ends := c.ends.Load(); now >= ends && c.ends.CompareAndSwap(ends, now+min(int64(l.every), math.MaxInt64-now)) {
		c.n.Store(0)
	}
	n := c.n.Add(1)
	return n <= l.first || l.thereafter > 0 && (n-l.first)%l.thereafter == 0
}
