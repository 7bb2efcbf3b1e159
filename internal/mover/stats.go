// SPDX-License-Identifier: Apache-2.0

package mover

// Reason says why an event is not delivered.
type Reason uint8

// The reasons. Refused events were never accepted.
const (
	Full     Reason = iota // refused: ring and spill were full
	Waited                 // refused: there was no room within MaxWait or the caller's context
	TooLarge               // refused: over MaxEvent
	Sampled                // not offered: the caller's sampling left it out
	Oldest                 // accepted, and dropped for newer ones
	Lost                   // accepted, and the memory or disk that held it can no longer be read, or the destination refuses it for good
	Given                  // accepted, and given up by Close with nowhere to keep it
	Closed                 // refused: after Close, so that no summary tells of it and no ring counts it
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
	case Given:
		return "given_up"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// Drops are counts by Reason.
type Drops [reasons]uint64

// Total is their sum.
func (d Drops) Total() uint64 {
	var n uint64
	for _, x := range d {
		n += x
	}
	return n
}

// Stats are counts since Open, and what is so now. When nothing moves
//
//	Accepted = Delivered + HandedOver + DeadLettered + Drops[Oldest] + Drops[Lost] + Drops[Given] + Held
type Stats struct {
	Accepted      uint64 // events: appended, summary events among them, and adopted
	Delivered     uint64 // events
	HandedOver    uint64 // events that an error handler took
	MaybeRepeated uint64 // of Delivered and HandedOver: another host may have them too
	DeadLettered  uint64 // events that the destination refuses for good, and that are dead letters
	LettersLost   uint64 // events of dead letters, of earlier processes too, that gave way to newer ones
	Drops         Drops  // by reason; what is refused was never accepted
	Told          Drops  // of which summary events have told

	Spilled       uint64 // events written to the spill
	AdoptedRings  uint64
	AdoptedSpills uint64
	Adopted       uint64 // events found in both

	Held      uint64 // events in ring, chunks and spills
	HeldBytes int64
	InFlight  int // chunks with the destination
	RingUsed  int64
	RingSize  int64
	DiskUsed  int64 // bytes of the segments of all spills that this process has open
	InMemory  bool  // the ring is in plain memory
	Spilling  bool  // the spill holds events
}
