// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/journal"
)

// Stats is what a Collector counts since it was opened. Two laws hold, in
// events; Check tells whether they do. For each input, and for all together:
//
//	In = Stored + Repeated + Skipped + Invalid + Oversize + Refused
//
// and for each output:
//
//	Found + Stored = Out + Filtered + Dropped + DeadLettered + Behind + Outside
//
// They are exact at rest: when no connection is in the middle of a message or
// of an ack. While events are on their way, a picture may show In ahead of the
// rest of the first law by what is just being stored, never behind, and an
// output's share up to a second late.
//
// Over a restart the counters begin anew, and what the journal holds for an
// output is counted from its bytes: what one run leaves as Behind the next
// one has as Found, so the Out of all runs together is the Stored of all runs
// together. Killed, a process cannot tell its last counts; what it acked is
// among the next one's Found, or was Out. What was not acked may be in neither.
type Stats struct {
	Counts // of all inputs together

	// In the order of Config.Inputs and Config.Outputs; those that Apply added stand behind, and
	// those that it removed stay where they are.
	Inputs  []InputStats
	Outputs []OutputStats

	// Counting is set while the journal is still being read for what it held at
	// the start: Found and Behind are too small until then. It reads in the background.
	Counting bool

	Repeats RepeatsStats
	Server  forward.ServerStats // of all Forward inputs together
	Journal journal.Stats
	Letters letters.Stats // dead letters: what is there, and what was dropped of them
	Failure *Failure      // of the journal: it takes nothing, and senders wait; nil while it does

	Messages []Message // what was said last, each kind once, the newest at the end
}

// Counts say what became of what arrived: in events, where the name says
// nothing else.
//
// A message that is refused as a whole can hold events that cannot be counted:
// its compression is damaged, or it is larger than what is read, or it is no
// message at all. RefusedMessages counts it, and no event of it is in In or
// Refused. Events are in Refused, and in In, where all of them were seen:
// beside an invalid one in a chunk when Config.RefuseInvalid is set, in a
// chunk too large for the journal, and in what was given up because the
// collector ended. Their senders have no ack.
type Counts struct {
	In       int64 // arrived
	Stored   int64 // in the journal, or on their way there: they will not be given up
	Repeated int64 // of chunks that were stored before
	Skipped  int64 // nil records (docs/forward.md rule 12)
	Invalid  int64 // left out (docs/forward.md rule 23)
	Oversize int64 // larger than Config.MaxEvent: dead letters, each time that they arrive
	Refused  int64 // not stored, not acked

	// Chunks = StoredChunks + RepeatedChunks + RefusedChunks are those with an
	// event in them. Messages of one event each that ask for no ack are gathered, many to a chunk.
	Chunks          int64
	StoredChunks    int64
	RepeatedChunks  int64
	RefusedChunks   int64
	RefusedMessages int64 // refused before they were chunks
}

// InputStats is what came by one input.
type InputStats struct {
	Name    string // as it was given, or the URL
	URL     string // with the port that was really taken
	Removed bool   // by Apply
	Counts
	Bytes       int64               // read
	Connections int64               // or files, or whatever it reads from, at present
	Cut         int64               // of Stored: their end is missing, for they were too long
	Unparsed    int64               // of Stored: text, for they are not what the input expects
	Rings       int64               // of dead processes, that were taken over and removed
	Spills      int64               // with them
	Lost        int64               // events in these that cannot be read: they never came in
	Server      forward.ServerStats // of a Forward input: its connections, bytes, acks and what peers did wrong
}

// OutputStats is what one output has got, in events.
type OutputStats struct {
	Name         string // as it was given, or the URL
	URL          string
	Removed      bool             // by Apply; what is behind waits for it to be added again
	Outside      int64            // stored before the output was added, or after its place was given up
	Found        int64            // for this output in the journal when the collector was opened
	Taken        int64            // handed to the output; after errors some of them again
	Out          int64            // confirmed: the output's cursor has passed them for good
	Filtered     int64            // not meant for this output, by Config.Routes
	Dropped      map[string]int64 // by reason; nil where nothing was
	DeadLettered int64            // set aside where the output or a step refuses them, or the output is too far behind
	Diverted     int64            // of Out: lines of new tags or times that went to the file for the rest
	Restamped    int64            // events that have another time there than their own, which is not taken
	MaybeTwice   int64            // of Out: written to two hosts, of which one did not ack in time
	Behind       int64            // in the journal, not confirmed yet

	BehindBytes int64 // of the journal that hold these
	// How long ago the oldest of these arrived, at least: to a second while this process has known
	// it, else to the last write of its segment's file.
	BehindFor   time.Duration
	Bytes       int64    // that Taken became: lines; 0 for discard:
	Retries     int64    // tries that failed: of what they were for another one came, or will
	Throttled   int64    // times that its other side held it up, for a quota was used up
	BreakerOpen bool     // its circuit breaker is open, after failures in a row: it is only probed
	Failure     *Failure // nil while the output takes what it is given

	Chunks int64 // handed to the output
	Broken int64 // records of the journal that were no chunks; what events they held is not known
}

// Lost is the sum of Dropped: how many events were given up, for all reasons together. Dead letters
// are not among them.
func (o *OutputStats) Lost() (n int64) {
	for _, d := range o.Dropped {
		n += d
	}
	return n
}

// Passed is how many events the output's cursor has passed: whatever became of them.
func (o *OutputStats) Passed() int64 { return o.Out + o.Filtered + o.Lost() + o.DeadLettered }

// RepeatsStats is how far back a chunk that comes again is recognised.
type RepeatsStats struct {
	Chunks    int           // remembered
	MaxChunks int           // at most: 786,432, which come in 3.9 s at 200,000 a second
	Bytes     int64         // of memory for them; at most 64 MiB
	Age       time.Duration // how far back it reaches: an hour, or since the oldest one came once there are MaxChunks
}

// unreadable is the reason for which a record of the journal is dropped that
// was written whole, but whose entries cannot be unpacked.
const unreadable = "unreadable"

// tooFarBehind is the reason for which an output drops what has waited too long for it.
const tooFarBehind = "behind"

// placeGivenUp is the reason for which what waited for an output is dropped that was removed, when
// the journal was full.
const placeGivenUp = "removed"

func (s *Stats) clone() Stats {
	t := *s
	t.Inputs, t.Outputs, t.Messages = slices.Clone(s.Inputs), slices.Clone(s.Outputs), slices.Clone(s.Messages)
	for i := range t.Outputs {
		t.Outputs[i].Dropped = maps.Clone(t.Outputs[i].Dropped)
	}
	return t
}

// count adds what the server knows of an input.
func (n *Counts) count(s *forward.ServerStats) {
	n.Skipped, n.Invalid, n.Oversize = int64(s.Skipped), int64(s.Invalid), int64(s.Large)
	n.Refused += int64(s.RefusedEvents)
	n.RefusedMessages = int64(s.Refused)
	n.Chunks = int64(s.Chunks)
	n.In = int64(s.Events) + n.Skipped + n.Invalid + n.Oversize + int64(s.RefusedEvents)
}

func (n *Counts) add(m *Counts) {
	n.In += m.In
	n.Stored += m.Stored
	n.Repeated += m.Repeated
	n.Skipped += m.Skipped
	n.Invalid += m.Invalid
	n.Oversize += m.Oversize
	n.Refused += m.Refused
	n.Chunks += m.Chunks
	n.StoredChunks += m.StoredChunks
	n.RepeatedChunks += m.RepeatedChunks
	n.RefusedChunks += m.RefusedChunks
	n.RefusedMessages += m.RefusedMessages
}

// Check returns an error that names the first law that does not hold. At rest
// it is nil; see Stats for what it may be while events are on their way.
func (s *Stats) Check() error {
	if err := s.check("all inputs"); err != nil {
		return err
	}
	for i := range s.Inputs {
		if err := s.Inputs[i].check(s.Inputs[i].Name); err != nil {
			return err
		}
	}
	for i := range s.Outputs {
		o := &s.Outputs[i]
		if o.Found+s.Stored != o.Passed()+o.Behind+o.Outside {
			return fmt.Errorf("%s: found %d + stored %d is not out %d + filtered %d + dropped %d + dead-lettered %d + behind %d + outside %d",
				o.Name, o.Found, s.Stored, o.Out, o.Filtered, o.Lost(), o.DeadLettered, o.Behind, o.Outside)
		}
	}
	return nil
}

func (n *Counts) check(of string) error {
	if n.In != n.Stored+n.Repeated+n.Skipped+n.Invalid+n.Oversize+n.Refused {
		return fmt.Errorf("%s: in %d is not stored %d + repeated %d + skipped %d + invalid %d + oversize %d + refused %d",
			of, n.In, n.Stored, n.Repeated, n.Skipped, n.Invalid, n.Oversize, n.Refused)
	}
	if n.Chunks != n.StoredChunks+n.RepeatedChunks+n.RefusedChunks {
		return fmt.Errorf("%s: %d chunks are not %d stored + %d repeated + %d refused",
			of, n.Chunks, n.StoredChunks, n.RepeatedChunks, n.RefusedChunks)
	}
	return nil
}
