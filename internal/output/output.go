// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"errors"

	"github.com/spillwaylog/spillway/forward"
)

// An Output takes chunks and says what became of each. It serves a logger, which calls it a
// destination, and the collector alike, and does not know which. Many goroutines may call its
// methods.
//
// An implementation keeps these rules:
//
//   - Submit returns at once, whatever the other side does. What cannot be delivered now is kept,
//     in the order of the calls. The caller bounds how much that is.
//   - A chunk and its bytes are shared and read-only from Submit until done: other outputs read
//     the same bytes at the same time. After done the output touches neither.
//   - done is called exactly once for each chunk: from any goroutine, in any order, perhaps before
//     Submit returns, with no lock held. Close is the latest: it calls done with ErrClosed.
//   - done means success, refused for good, or closed. Pauses, the circuit breaker and sending
//     again in order belong to the output. A caller that tried again would let later chunks pass.
//   - A chunk has an id. An output whose other side knows ids sends it along.
type Output interface {
	// Submit hands over a chunk. done must not block, and may call Submit.
	Submit(c *forward.Chunk, done func(Result))
	// Flush returns when all that was submitted before is done and as durable as the output can
	// make it: a file is on the disk where that was asked for. A Resumer's last State, given
	// before, is as good after it, so Flush saves none. An error that wraps ErrReopen says that
	// this output is of no more use; another error, that Flush may be tried again.
	Flush(ctx context.Context) error
	// Close gives up what is pending: when it returns, done was called for each chunk. It returns
	// by ctx at the latest. Its error names what was left behind, such as a write that hangs. It
	// may be called more than once.
	Close(ctx context.Context) error
}

// A Resumer is an Output with a state: what it has to know after a crash to deliver each event
// once, such as how far each file is written. Its caller keeps the state together with its own
// position, in one record.
type Resumer interface {
	Output
	// Resume is called once, before the first Submit. states are what was kept last: one, none at
	// the first start, or several that speak of the same chunks. save makes a state durable without
	// moving the position; the output calls it before it does what the last state does not explain,
	// also in the middle of a chunk: a file is named in a state before its first byte is written.
	Resume(save func(state []byte) error, states ...[]byte) error
}

// An Origin is a process whose chunks a logger delivers: one that died, or its own.
type Origin struct {
	States [][]byte                 // what was kept of it last, as for Resume
	Save   func(state []byte) error // as for Resume
}

// A ByOrigin output is a Resumer for the chunks of several processes. A state belongs to one
// origin: what a process had written when it died is looked for only when its own chunks come
// again.
type ByOrigin interface {
	Resumer
	// ResumeFrom is Resume with several origins. Submit is SubmitFrom of the last of them.
	ResumeFrom(origins ...Origin) error
	// SubmitFrom is Submit of a chunk of the origin with that index. When it is another one than
	// before, nothing is pending.
	SubmitFrom(origin int, c *forward.Chunk, done func(Result))
}

// A Placed output wants to know where its caller stands: it resumes in the middle of a chunk.
type Placed interface {
	Output
	// SubmitAt is Submit with a token, opaque bytes that say where the caller stands behind the
	// chunk, valid until it returns. A later chunk has a greater one; the same chunk has the same
	// again, after a crash too.
	SubmitAt(token []byte, c *forward.Chunk, done func(Result))
}

// A Longer output takes an event that is too long to be in memory. The chunk has this one event and
// no entries: they are read from l as often as the output likes, until done.
type Longer interface {
	Output
	// SubmitLong is Submit, or SubmitAt of a Placed output, for such an event.
	SubmitLong(token []byte, c *forward.Chunk, l *forward.Long, done func(Result))
}

// A Waiter can tell that it is not this process that holds up what was submitted.
type Waiter interface {
	Output
	// Waiting says that something was submitted and is not done, and that all of it has left the
	// process, or is ready for a disk that does not take it yet.
	Waiting() bool
}

// A Transactional output keeps the position itself, in one transaction with the events. Of what it
// committed when its caller was killed only the token is known. So what it rejects it hands to
// refuse before it commits the rest; in the Result it only counts.
type Transactional interface {
	Placed // the other side gets both or neither, chunk and token, in the order of the calls
	// Restore is called once, before the first Submit. It returns the token of the last chunk that
	// the other side has for good; ok is false where it has none yet. An error that wraps ErrReopen
	// says that it may be tried again.
	Restore(ctx context.Context, refuse Refuse) (token []byte, ok bool, err error)
}

// Refuse makes rejected entries of a chunk dead letters, which are durable when it returns.
type Refuse func(ctx context.Context, token []byte, c *forward.Chunk, rejected []Rejected) error

// A Result says what became of a chunk. The zero value: it was delivered.
type Result struct {
	// HandedOver says that a fallback took the chunk: it was not delivered.
	HandedOver bool
	// MaybeRepeated says that the other side may have some of the chunk twice.
	MaybeRepeated bool
	// Rejected are the entries that are refused for good. The others were delivered.
	Rejected []Rejected
	// State is what a Resumer has to know if its caller's position is the end of this chunk. nil
	// says that the position must not stop here: the state comes with a later chunk, at the latest
	// with the last one that was submitted.
	State []byte
	// Soon asks for a State to be kept as soon as there is one: what was done since the last would
	// be done twice after a crash, or takes much memory.
	Soon bool
	// Bytes is what the chunk became, where the output counts that: lines, for instance.
	Bytes int64
	// Diverted is how many events went to another place than their own: too many places are new.
	Diverted int64
	// Torn is how many parts of lines, of processes that were killed, were met in a shared file.
	Torn int64
	// Restamped is how many events have another time there than their own: theirs is not taken.
	Restamped int64
	// Err is nil; ErrClosed, where Close gave the chunk up; or an error that wraps ErrReopen. With
	// an error the chunk is the caller's, and parts of it may be delivered.
	Err error
}

// Rejected is an entry that the other side refuses, however often it is sent.
type Rejected struct {
	Entry int // its index in the chunk, or All
	Err   error
}

// AllEntries is the index of a rejected entry that stands for the whole chunk.
const AllEntries = -1

// ErrClosed is the Err of a Result whose chunk was given up by Close, or submitted after it.
var ErrClosed = errors.New("output: closed")

// ErrLeft says that something could not be ended by Close and was left behind. It touches nothing
// of the caller's any more.
var ErrLeft = errors.New("left behind")

// ErrReopen says that an output cannot go on as it is. Its caller closes it, opens another one
// with the state that was kept last, and submits again what came after that.
var ErrReopen = errors.New("opening it again")
