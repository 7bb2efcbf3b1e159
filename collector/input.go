// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"log/slog"

	"github.com/spillwaylog/spillway/forward"
)

// An Input takes events from somewhere and puts them into a sink.
//
// It may have three more methods. Close() error lets go of what it holds, such as a socket: it is
// called once, after Run has returned, or in its place where the collector is closed without being
// run. Addr() net.Addr says where it listens, for Collector.Addrs. Reload() error reads the files
// of its credentials again, for Collector.Apply, also before it runs and when it has ended: those
// that are not good replace nothing, and the error, which shows no secret, says why.
type Input interface {
	// Run takes events until ctx ends. Then it takes no more, finishes what it has begun, and
	// returns nil or the error of ctx; it has Config.Drain for that, after which the sink takes
	// nothing. Nil before that says that nothing more will come: once all inputs have ended so, the
	// collector hands on what it has, however long that takes, and ends. Any other return is a
	// failure, which ends the collector.
	Run(ctx context.Context, sink Sink) error
	// Stats is what came in so far. It may be called at any time.
	Stats() Received
}

// A Sink is where an input puts what it takes. Many goroutines may use it.
type Sink interface {
	// Store stores chunks, in their order, which are lent until it returns. It blocks while there
	// is no room; that is the back-pressure. Of a chunk count Tag, Entries and Events; the other
	// fields may be left out. A chunk without entries is left out.
	//
	// A chunk with an ID is left out if it was stored before: the same ID, tag and entries, of the
	// same peer (unless the chunk has UniqueID), on another connection, as forward.WithSender says
	// with Peer and Conn in ctx. Without an ID it is always stored.
	//
	// durable waits until the chunks are what an ack promises (Config.Ack): call it before the
	// source is told that they are taken, perhaps once for many. It is not nil where err is.
	//
	// position, if not nil, says to the input where the source stands behind these chunks; it has
	// at most MaxPosition bytes. It is stored with the last of them, in one record: after a crash
	// there are both or neither. The chunks of such a group have all an ID or none. Those without
	// an ID that follow one another with the same tag become one, up to an eighth of the journal,
	// and so are there with the position or not at all. A crash while a group of several tags is
	// stored may leave the first of them without the position: they come again, and only IDs tell
	// that they were there. Groups with a position are stored one after another. Without chunks the
	// position is kept soon, and until then a crash brings the one before it back: that is for what
	// the input leaves out.
	//
	// An error says that a chunk is none, and then nothing of the group is stored; or that ctx has
	// ended, or the collector takes nothing any more, or a chunk is too large for the journal:
	// then what stands before it may be stored.
	Store(ctx context.Context, chunks []*forward.Chunk, position []byte) (durable func(context.Context) error,
		err error)
	// Position is what was stored last before the collector was opened; nil if nothing was. It
	// belongs to the name of the input, or, if it has none, to scheme and path of its URL.
	Position() []byte
}

// MaxPosition is how many bytes a position may have: it is in every record that it comes with.
const MaxPosition = 64 << 10

// Received is what an input counts itself; what it stored the sink counts.
type Received struct {
	Bytes       int64 // read
	Connections int64 // or files, or whatever it reads from, at present
	Skipped     int64 // events without a record
	Invalid     int64 // events left out because they are none
	Refused     int64 // events refused before they were chunks
	Cut         int64 // of the events stored: their end is missing, for they were too long
	Unparsed    int64 // of the events stored: text, for they are not what the input expects
	Rings       int64 // of dead processes, that were taken over and removed
	Spills      int64 // with them
	Lost        int64 // events in these that cannot be read: they never came in
}

func (r *Received) add(o *Received) {
	r.Bytes += o.Bytes
	r.Connections += o.Connections
	r.Skipped += o.Skipped
	r.Invalid += o.Invalid
	r.Refused += o.Refused
	r.Cut += o.Cut
	r.Unparsed += o.Unparsed
	r.Rings += o.Rings
	r.Spills += o.Spills
	r.Lost += o.Lost
}

// InputKind understands the URL of an input. It touches nothing yet, so that a mistake in one URL
// is told before anything is opened. What it returns opens the input.
type InputKind func(u *URL, p *Params) (open func(*InputEnv) (Input, error), err error)

// InputEnv is what an input gets from the collector.
type InputEnv struct {
	Name string       // of the input, or its URL
	Log  *slog.Logger // its messages
}
