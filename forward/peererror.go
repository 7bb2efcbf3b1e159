// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// PeerErrorKind says what was wrong with what a peer sent, or with the peer.
type PeerErrorKind uint8

// The kinds of peer errors, and what becomes of the connection; doc.go has the table.
const (
	_           PeerErrorKind = iota
	PeerGarbage               // bytes that are no Forward messages: closed
	PeerPartial               // the stream ended within a message: it was discarded
	// Arrays and maps nested too deep: closed, or the chunk refused where it has a frame of its
	// own.
	PeerTooDeep
	PeerTooLong            // a claimed length or count that no message could hold: the same
	PeerTooLarge           // a message or chunk over MaxChunk: closed
	PeerInvalidMessage     // a complete array that is no message: refused
	PeerInvalidEntries     // entries whose time or record is of the wrong type: left out, or the chunk refused
	PeerInvalidChunk       // packed entries that break off or are no MessagePack: refused
	PeerBadTag             // no tag, or one over MaxTag: refused; odd characters in it: kept
	PeerBadID              // a chunk id over MaxID: refused
	PeerUnknownCompression // refused
	PeerCorrupt            // compressed bytes that are damaged or cut off: refused
	PeerBomb               // decompresses to more than MaxDecompressed: refused
	PeerTooLargeEvent      // an event over MaxEvent: set aside, or the chunk refused
	PeerSignal             // metrics or traces: refused
	PeerSlowReader         // does not read its acks: closed
	PeerSlowSender         // holds memory that others wait for, and does not go on: closed
	PeerUnstored           // the handler could not store the chunk: closed without an ack
	PeerBroken             // the connection broke
	PeerHandshakeFailed    // TLS or the Forward handshake: not spoken, malformed, too late: closed
	PeerDenied             // a wrong key or password, an unknown user, an address that is not welcome: closed
	PeerNotAccepted        // too many open files, or no memory for a connection: it waits
	PeerTooMany            // over MaxConnections, or out of open files, and idle for longest: closed
	PeerOtherProtocol      // it speaks something else, which Err names: closed
	PeerWithdrawn          // what it has logged in with is good no more, see Recheck: closed
	peerErrorKinds
)

var peerErrorNames = [peerErrorKinds]string{
	"", "garbage", "partial message", "too deep", "too long", "too large", "invalid message", "invalid entries",
	"invalid chunk", "bad tag", "bad id",
	"unknown compression", "corrupt", "bomb", "too large event", "signal", "slow reader", "slow sender", "unstored",
	"broken", "handshake failed", "denied", "not accepted",
	"too many connections", "other protocol", "login withdrawn",
}

// PeerErrorKinds returns all kinds, for a program that has a counter for each.
func PeerErrorKinds() []PeerErrorKind {
	kinds := make([]PeerErrorKind, 0, peerErrorKinds-1)
	for k := PeerErrorKind(1); k < peerErrorKinds; k++ {
		kinds = append(kinds, k)
	}
	return kinds
}

// String returns the kind in a few words.
func (k PeerErrorKind) String() string {
	if k < peerErrorKinds {
		return peerErrorNames[k]
	}
	return fmt.Sprintf("PeerErrorKind(%d)", uint8(k))
}

// Action says what the server did about a PeerError.
type Action uint8

// The actions.
const (
	ActionKeep   Action = iota // all else of the chunk is handed on, the connection stays
	ActionRefuse               // the message is not handed on and not acked, the connection stays
	ActionClose                // the connection is closed
)

// String returns the action in a few words.
func (a Action) String() string {
	switch a {
	case ActionKeep:
		return "kept"
	case ActionRefuse:
		return "message refused"
	case ActionClose:
		return "connection closed"
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// A PeerError says what was wrong with a message or a connection. Server.PeerError is called with
// one for each.
type PeerError struct {
	Kind   PeerErrorKind
	Action Action
	Tag    string // where one is known
	// Sender has the peer's address, the connection and the endpoint that it came in by; for
	// PeerNotAccepted the listener's address. What it says of a login may not be read: that may be
	// going on.
	Sender *Sender
	// Entries is how many entries were left out, for PeerInvalidEntries with ActionKeep.
	Entries int
	Err     error
}

// Error returns one line that has it all, with nothing of the peer's that could forge a line.
func (e PeerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s: ", e.Kind, e.Sender.Address())
	if e.Entries > 0 {
		fmt.Fprintf(&b, "%d left out: ", e.Entries)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, "%s ", e.Err)
	}
	if e.Tag != "" {
		fmt.Fprintf(&b, "(tag %q) ", e.Tag)
	}
	fmt.Fprintf(&b, "(%s)", e.Action)
	return b.String()
}

// Unwrap returns Err.
func (e PeerError) Unwrap() error { return e.Err }

// fault is a peer error on its way up: an error that has a kind.
type fault struct {
	kind PeerErrorKind
	err  error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func faultf(kind PeerErrorKind, format string, args ...any) error {
	return &fault{kind, fmt.Errorf(format, args...)}
}

// peerErrorOf has the kind for what is wrong with bytes.
var peerErrorOf = [...]PeerErrorKind{
	wire.FaultGarbage: PeerGarbage, wire.FaultTooDeep: PeerTooDeep, wire.FaultTooLong: PeerTooLong,
	wire.FaultTooLarge:       PeerTooLarge,
	wire.FaultInvalidMessage: PeerInvalidMessage, wire.FaultInvalidChunk: PeerInvalidChunk,
	wire.FaultBadTag: PeerBadTag,
}

// faultOf finds the fault in an error: nil if there is none.
func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	var b *wire.Fault
	if errors.As(err, &b) {
		return &fault{peerErrorOf[b.Kind], b.Err}
	}
	return nil
}
