// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// How this file is organised. A peer that speaks another protocol by mistake sends what looks like
// values that are no messages, and these are ignored (docs/forward.md rule 6): both ends would wait
// for ever. So alien looks at the first bytes of a connection. It says what they are, or that more
// are needed to know; what comes first of a message, a heartbeat, or any value that is no small
// number in the range of text, is known to be Forward by its first byte.

// alienError says what a peer seems to speak, and with what it began.
func alienError(name string, b []byte, instead string) error {
	if len(b) > 0 {
		name = fmt.Sprintf("%s, it begins with %q", name, b[:min(len(b), 16)])
	}
	return faultf(PeerOtherProtocol, "this looks like %s%s", name, instead)
}

// notTLS says what a peer speaks that should speak TLS; nil: something like TLS.
func notTLS(err error) error {
	var head tls.RecordHeaderError
	if !errors.As(err, &head) || head.Conn == nil {
		return nil
	}
	b := head.RecordHeader[:]
	name, _ := wire.Alien(b)
	switch {
	case name != "" && name != "TLS":
	case wire.IsArray(b[0]), b[0] == wire.CodeNil, b[0] == '{', b[0] == '[':
		return alienError("plain Forward", b, ": this listener takes TLS, the sender is to use forward+tls://")
	default:
		if name, _ = wire.Text(append(b[:len(b):len(b)], '\n')); name == "" {
			return nil
		}
	}
	return alienError(name, b, ": this listener takes TLS")
}

// notPing says what came in place of a PING; nil: nothing that is known.
func notPing(b []byte) error {
	if len(b) > 0 && wire.IsArray(b[0]) {
		if t, _, err := wire.Opens(b, "PING"); err != nil && t == 0 {
			return fmt.Errorf("an event came in its place: this listener wants a shared key, and the sender has none")
		}
		return nil
	}
	if name, _ := wire.Alien(b); name != "" {
		return alienError(name, b, "")
	}
	return nil
}
