// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
)

// Config says what is followed and where it goes. Reader and Open are all it needs.
type Config struct {
	// Reader is the cursor. Run closes it.
	Reader *journal.Reader
	// Recent returns the chunk behind a position from memory, if it is there; nil: there is none.
	// It returns only what the journal has synced.
	Recent func(after journal.Position) (Recent, bool)
	// Identify appends the id of the record between two positions. It replaces an id that is not
	// Spillway's own. nil leaves ids as they are.
	Identify func(dst []byte, first, last journal.Position) []byte
	// Open makes the output; the follower resumes it. It is called again after ErrReopen.
	Open func() (output.Output, error)
	// Opaque says that the output does not look at entries: they stay compressed.
	Opaque bool
	// Guard has a second call of done left out and told, at the cost of some memory for each chunk.
	// It is for outputs whose code is not known.
	Guard bool
	// Eager commits as soon as the follower has caught up: acks wait for that.
	Eager bool
	// Chunks and Bytes bound what is submitted and not passed by the finished prefix; 1024 and 4
	// MiB if 0. One chunk may be larger.
	Chunks int
	Bytes  int64
	// Piece is the longest chunk that is submitted; 4 MiB if 0. A longer one comes in pieces, each
	// a chunk of its own, with an id of its own, unless the output is Opaque or Transactional. One
	// event may be larger: an output.Longer gets it as a stream.
	Piece int64
	// Packs says that the output takes compressed entries, whatever it has them become: an event of
	// more than four pieces leaves so.
	Packs bool
	// Sift says which events the output gets, and what steps make of them; nil: all, as they are.
	// While steps run an event is in memory, however large it is.
	Sift *step.Sifter
	// Turn is waited for before an event or a record of more than Piece is in memory; nil: nothing
	// is.
	Turn *Turn

	// Caution remembers records on which the process died; nil: nothing does.
	Caution *Caution

	// Behind is when what has waited longest is given up; nil: never.
	Behind *Behind

	// Refuse makes refused entries dead letters, durable when it returns. nil drops them.
	Refuse func(ctx context.Context, refused []Refused) error
	// Passed is called after each commit with what the cursor has passed since the last one.
	Passed func(p journal.Position, n Counts)
	// Failed is told a step of the follower's own that failed, and the pause before the next try;
	// Worked that it works again. What the output tries again by itself, the output tells.
	Failed func(err error, pause time.Duration)
	Worked func()
	// Report is told of a record that is no chunk, and of what goes wrong beside: an output that
	// does not close, for instance.
	Report func(error)
}

// Counts are events, but for Chunks and Broken.
type Counts struct {
	Out        int64 // delivered
	HandedOver int64 // a fallback took them
	Repeated   int64 // of Out and HandedOver: the other side may have them twice
	Filtered   int64 // not meant for this output, by its routes or their steps
	Refused    int64 // dead letters, also of what was given up
	Aside      int64 // of Refused: given up because too much waited
	Dropped    int64 // given up because too much waited, and no dead letter
	Unreadable int64 // of records that are no chunk, as far as they say how many
	Restamped  int64 // they have another time there than their own
	Diverted   int64 // of Out: they went to another place than their own
	Bytes      int64 // what the output made of Out
	Chunks     int64 // finished
	Broken     int64 // records that are no chunk
}

func (n *Counts) add(m *Counts) {
	n.Out += m.Out
	n.HandedOver += m.HandedOver
	n.Repeated += m.Repeated
	n.Filtered += m.Filtered
	n.Refused += m.Refused
	n.Aside += m.Aside
	n.Dropped += m.Dropped
	n.Unreadable += m.Unreadable
	n.Diverted += m.Diverted
	n.Restamped += m.Restamped
	n.Bytes += m.Bytes
	n.Chunks += m.Chunks
	n.Broken += m.Broken
}

// A Recent is a chunk that is still in memory: what was appended as one record.
type Recent struct {
	End   journal.Position
	Chunk *forward.Chunk         // its entries are not compressed; shared and read-only until Release
	Held  interface{ Release() } // called once, perhaps from a goroutine of the output's
}

// Refused are entries of one record that an output refused for good, all for one reason.
type Refused struct {
	Position journal.Position // the end of the record
	Time     time.Time        // of the refusal
	Reason   string
	Entries  []int          // their indices in the record, or in what steps left of it for the output
	Chunk    *forward.Chunk // these entries alone, uncompressed; it shares no bytes
}

// Behind says when an output is so far behind that what has waited longest is given up.
type Behind struct {
	// Over says whether too much waits behind a position. If so it returns what says from which
	// position on it is little enough again.
	Over func(at journal.Position) (enough func(at journal.Position) bool)
	// Reason makes dead letters of what is given up, by Config.Refuse; empty drops it.
	Reason string
}

// Note is what a process that ended left of a follower.
type Note struct {
	Finished journal.Position // up to there all was done
	Alone    bool             // the record behind it was in hand, and no other
	Trials   int              // and nothing else ran: in so many processes, one after the other
}

// A Caution is what a follower keeps to.
type Caution struct {
	Died bool             // the process before did not end in good order
	Last Note             // what it left
	End  journal.Position // where the journal ended at the start
	Note func(Note)       // keeps what outlives this process; it must be quick
}
