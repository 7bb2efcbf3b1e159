// SPDX-License-Identifier: Apache-2.0

package mover

// Reason says why an event is not delivered.
type Reason uint8

// The reasons. Refused events were never accepted.
const (
	Full     Reason = iota // refused: the ring was full, and there was no spill with room
	Waited                 // refused: there was no room within MaxWait or the caller's context
	TooLarge               // refused: over MaxEvent
	Sampled                // not offered: the caller's sampling left it out
	Oldest                 // accepted, and dropped for newer ones
	// Accepted, and the memory or disk that held it can no longer be read, or the destination
	// refuses it for good.
	Lost
	GivenUp // accepted, and given up by Close with nowhere to keep it
	Slow    // refused: the ring was full, since the disk takes less than comes
	Closed  // refused: after Close, so that no summary tells of it and no ring counts it
	reasons
)

// String is a word for counters and events.
func (r Reason) String() string {
	switch r {
	case Full:
		return "full"
	case Waited:
		return "waited"
	case TooLarge:
		return "too_large"
	case Sampled:
		return "sampled"
	case Oldest:
		return "oldest"
	case Lost:
		return "lost"
	case GivenUp:
		return "given_up"
	case Slow:
		return "slow"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Missed counts the events that are not delivered, by Reason.
type Missed [reasons]uint64

// Total is their sum.
func (m Missed) Total() uint64 {
	var n uint64
	for _, x := range m {
		n += x
	}
	return n
}

// Counts say what became of events since Open, and how things are now. When nothing moves
//
//	Accepted = Delivered + HandedOver + DeadLettered + Dropped + Lost + Held
type Counts struct {
	Accepted      uint64 // events taken over: logged, summary events among them, or adopted
	Delivered     uint64 // written, or acked
	HandedOver    uint64 // taken by the ErrorHandler
	MaybeRepeated uint64 // of these two: another host may have them, too
	Torn          uint64 // parts of lines that were met in a file that processes share
	DeadLettered  uint64 // refused by the destination for good, and kept as dead letters in Options.Dir
	LettersLost   uint64 // events of dead letters, of earlier processes too, that gave way to newer ones
	Dropped       uint64 // accepted, and dropped later: see DroppedBy
	Lost          uint64 // accepted, and then unreadable in memory or on disk, or refused for good with no Dir
	Held          uint64 // in ring, chunks and spill

	Refused uint64 // not accepted: see RefusedBy
	Sampled uint64 // left out by Options.Sample

	DroppedBy map[string]uint64 // Dropped by reason: oldest, given_up
	RefusedBy map[string]uint64 // Refused by reason: full, slow, waited, too_large, closed

	Spilled uint64 // events that went to the disk
	Adopted Adopted

	HeldBytes int64
	InFlight  int // chunks on their way
	RingUsed  int64
	RingSize  int64
	DiskUsed  int64 // bytes of the segments of all spills that this process has open
	InMemory  bool  // the ring is in plain memory, so that it does not outlive the process
	Spilling  bool  // the disk holds events
}

// Adopted is what dead processes left and this one took over.
type Adopted struct {
	Rings  uint64
	Spills uint64
	Events uint64
}

// Count puts what is not delivered where it belongs, by its reasons.
func (m Missed) Count(c *Counts) {
	c.Lost, c.Sampled = m[Lost], m[Sampled]
	c.Dropped, c.DroppedBy = m.by(Oldest, GivenUp)
	c.Refused, c.RefusedBy = m.by(Full, Slow, Waited, TooLarge, Closed)
}

func (m *Missed) by(reasons ...Reason) (total uint64, by map[string]uint64) {
	for _, r := range reasons {
		if m[r] == 0 {
			continue
		}
		if by == nil {
			by = map[string]uint64{}
		}
		by[r.String()] = m[r]
		total += m[r]
	}
	return total, by
}

// Stats are the counts, and what the tests look at beside them.
type Stats struct {
	Counts
	Missed Missed // by reason; what is refused was never accepted
	Told   Missed // of which summary events have told
}
