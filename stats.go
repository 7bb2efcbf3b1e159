// SPDX-License-Identifier: Apache-2.0

package spillway

import "github.com/spillwaylog/spillway/internal/mover"

// Stats says what became of events since Open, and how things are now: a struct of counts. When
// nothing moves
//
//	Accepted = Delivered + HandedOver + DeadLettered + Dropped + Lost + Held
//
// Beside these it has Refused and Sampled, which were not accepted; RefusedBy and DroppedBy by
// reason; MaybeRepeated, Torn, LettersLost, Spilled and [Adopted]; HeldBytes, InFlight, RingUsed,
// RingSize, DiskUsed; InMemory, when the ring does not outlive the process, and Spilling, when the
// disk holds events.
type Stats = mover.Counts

// Adopted is what dead processes left and this logger took over: Rings, Spills, Events.
type Adopted = mover.Adopted

// Stats returns counts and state. It is meant for metrics, not for every call.
func (l *Logger) Stats() Stats {
	if l.off() {
		return Stats{}
	}
	return l.c.to.Stats().Counts
}
