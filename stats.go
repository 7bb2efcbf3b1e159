// SPDX-License-Identifier: Apache-2.0

package spillway

import "github.com/spillwaylog/spillway/internal/mover"

// Stats says what became of events since Open, and how things are now. When nothing moves
//
//	Accepted = Delivered + HandedOver + DeadLettered + Dropped + Lost + Held
type Stats struct {
	Accepted      uint64 // events taken over: logged, summary events among them, or adopted
	Delivered     uint64 // written, or acked
	HandedOver    uint64 // taken by the ErrorHandler
	MaybeRepeated uint64 // of these two: another host may have them, too
	DeadLettered  uint64 // refused by the destination for good, and kept as dead letters in Options.Dir
	LettersLost   uint64 // events of dead letters, of earlier processes too, that gave way to newer ones
	Dropped       uint64 // accepted, and dropped later: see DroppedBy
	Lost          uint64 // accepted, and then unreadable in memory or on disk, or refused for good with no Dir
	Held          uint64 // in ring, chunks and spill

	Refused uint64 // not accepted: see RefusedBy
	Sampled uint64 // left out by Options.Sample

	DroppedBy map[string]uint64 // Dropped by reason: oldest, given_up
	RefusedBy map[string]uint64 // Refused by reason: full, waited, too_large, closed

	Spilled uint64 // events that went to the disk
	Adopted Adopted

	HeldBytes int64
	InFlight  int // chunks on their way
	RingUsed  int64
	RingSize  int64
	DiskUsed  int64
	InMemory  bool // the ring is in plain memory, so that it does not outlive the process
	Spilling  bool // the disk holds events
}

// Adopted is what dead processes left and this logger took over.
type Adopted struct {
	Rings  uint64
	Spills uint64
	Events uint64
}

// Stats returns counts and state. It is meant for metrics, not for every call.
func (l *Logger) Stats() Stats {
	switch {
	case l.off():
		return Stats{}
	case l.c.mover == nil:
		return l.c.events.stats()
	}
	m := l.c.mover.Stats()
	s := Stats{
		Accepted: m.Accepted, Delivered: m.Delivered, HandedOver: m.HandedOver, MaybeRepeated: m.MaybeRepeated,
		DeadLettered: m.DeadLettered, LettersLost: m.LettersLost,
		Lost: m.Drops[mover.Lost], Held: m.Held, Sampled: m.Drops[mover.Sampled],
		Spilled: m.Spilled, Adopted: Adopted{Rings: m.AdoptedRings, Spills: m.AdoptedSpills, Events: m.Adopted},
		HeldBytes: m.HeldBytes, InFlight: m.InFlight, RingUsed: m.RingUsed, RingSize: m.RingSize, DiskUsed: m.DiskUsed,
		InMemory: m.InMemory, Spilling: m.Spilling,
	}
	s.Dropped, s.DroppedBy = byReason(m.Drops, mover.Oldest, mover.Given)
	s.Refused, s.RefusedBy = byReason(m.Drops, mover.Full, mover.Waited, mover.TooLarge, mover.Closed)
	return s
}

func byReason(d mover.Drops, reasons ...mover.Reason) (total uint64, by map[string]uint64) {
	for _, r := range reasons {
		if d[r] == 0 {
			continue
		}
		if by == nil {
			by = map[string]uint64{}
		}
		by[r.String()] = d[r]
		total += d[r]
	}
	return total, by
}
