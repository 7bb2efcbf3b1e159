// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// TroubleKind says what was wrong with what a peer sent, or with the peer.
type TroubleKind uint8

// The kinds of trouble, and what becomes of the connection; doc.go has the table.
const (
	_       TroubleKind = iota
	Garbage             // bytes that are no Forward messages: closed
	Partial             // the stream ended within a message: it was discarded
	// Arrays and maps nested too deep: closed, or the chunk refused where it has a frame of its
	// own.
	TooDeep
	TooLong            // a claimed length or count that no message could hold: the same
	TooLarge           // a message or chunk over MaxChunk: closed
	InvalidMessage     // a complete array that is no message: refused
	InvalidEntries     // entries whose time or record is of the wrong type: left out, or the chunk refused
	InvalidChunk       // packed entries that break off or are no MessagePack: refused
	BadTag             // no tag, or one over MaxTag: refused; odd characters in it: kept
	BadID              // a chunk id over MaxID: refused
	UnknownCompression // refused
	Corrupt            // compressed bytes that are damaged or cut off: refused
	Bomb               // decompresses to more than MaxDecompressed: refused
	TooLargeEvent      // an event over MaxEvent: set aside, or the chunk refused
	Signal             // metrics or traces: refused
	SlowReader         // does not read its acks: closed
	SlowSender         // holds memory that others wait for, and does not go on: closed
	Unstored           // the handler could not store the chunk: closed without an ack
	Broken             // the connection broke
	HandshakeFailed    // TLS or the Forward handshake: not spoken, malformed, too late: closed
	Denied             // a wrong key or password, an unknown user, an address that is not welcome: closed
	NotAccepted        // too many open files, or no memory for a connection: it waits
	TooMany            // over MaxConnections, or out of open files, and idle for longest: closed
	OtherProtocol      // it speaks something else, which Err names: closed
	Withdrawn          // what it has logged in with is good no more, see Recheck: closed
	troubleKinds
)

var troubleNames = [troubleKinds]string{
	"", "garbage", "partial message", "too deep", "too long", "too large", "invalid message", "invalid entries",
	"invalid chunk", "bad tag", "bad id",
	"unknown compression", "corrupt", "bomb", "too large event", "signal", "slow reader", "slow sender", "unstored",
	"broken", "handshake failed", "denied", "not accepted",
	"too many connections", "other protocol", "login withdrawn",
}

// TroubleKinds returns all kinds, for whoever wants a counter for each.
func TroubleKinds() []TroubleKind {
	kinds := make([]TroubleKind, 0, troubleKinds-1)
	for k := TroubleKind(1); k < troubleKinds; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// String returns the kind in a few words.
func (k TroubleKind) String() string {
	if k < troubleKinds {
		return troubleNames[k]
	}
	return fmt.Sprintf("TroubleKind(%d)", uint8(k))
}

// Fate says what became of what was in trouble.
type Fate uint8

// The fates.
const (
	Kept    Fate = iota // all else of the chunk is handed on, the connection stays
	Refused             // the message is not handed on and not acked, the connection stays
	Closed              // the connection is closed
)

// String returns the fate in a few words.
func (f Fate) String() string {
	switch f {
	case Kept:
		return "kept"
	case Refused:
		return "message refused"
	case Closed:
		return "connection closed"
	}
	return fmt.Sprintf("Fate(%d)", uint8(f))
}

// A Trouble is told to Server.Trouble, once for each message or connection that is in trouble.
type Trouble struct {
	Kind TroubleKind
	Fate Fate
	Tag  string // where one is known
	// Sender has the peer's address, the connection and the endpoint that it came in by; for
	// NotAccepted the listener's address. What it says of a login may not be read: that may be
	// going on.
	Sender *Sender
	// Entries is how many entries were left out, for InvalidEntries with Fate Kept.
	Entries int
	Err     error
}

// String returns one line that has it all, with nothing of the peer's that could forge a line.
func (t Trouble) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s: ", t.Kind, t.Sender.Address())
	if t.Entries > 0 {
		fmt.Fprintf(&b, "%d left out: ", t.Entries)
	}
	if t.Err != nil {
		fmt.Fprintf(&b, "%s ", t.Err)
	}
	if t.Tag != "" {
		fmt.Fprintf(&b, "(tag %q) ", t.Tag)
	}
	fmt.Fprintf(&b, "(%s)", t.Fate)
	return b.String()
}

// fault is a trouble on its way up: an error that has a kind.
type fault struct {
	kind TroubleKind
	err  error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func faultf(kind TroubleKind, format string, args ...any) error {
	return &fault{kind, fmt.Errorf(format, args...)}
}

// troubleOf is what is wrong with bytes, as a kind of trouble.
var troubleOf = [...]TroubleKind{
	wire.Garbage: Garbage, wire.TooDeep: TooDeep, wire.TooLong: TooLong, wire.TooLarge: TooLarge,
	wire.InvalidMessage: InvalidMessage, wire.InvalidChunk: InvalidChunk, wire.BadTag: BadTag,
}

// faultOf finds the trouble in an error: nil if there is none.
func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	var b *wire.Fault
	if errors.As(err, &b) {
		return &fault{troubleOf[b.Kind], b.Err}
	}
	return nil
}
