// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"strings"

	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// What a peer says, in errors.

// quote shows what a peer calls something, on one line and not more than is useful.
func quote(b []byte) string { return fmt.Sprintf("%q", wire.Shorten(b)) }

// cleanError is an error that quotes a peer, without what could forge a line.
type cleanError struct{ err error }

func (e cleanError) Unwrap() error { return e.err }

func (e cleanError) Error() string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == 0x85 {
			return '?'
		}
		return r
	}, e.err.Error())
	if len(text) > 2*maxReason {
		text = strings.ToValidUTF8(text[:2*maxReason], "") + "…"
	}
	return text
}

// maxReason is how much of a server's reason goes into an error.
const maxReason = 200
