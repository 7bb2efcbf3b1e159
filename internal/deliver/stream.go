// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"io"
	"time"

	"github.com/spillwaylog/spillway/internal/lines"
)

// Color says whether lines of text are coloured.
type Color uint8

// ColorAuto colours them on a terminal, unless $NO_COLOR is set or $TERM is "dumb".
const (
	ColorAuto Color = iota
	ColorAlways
	ColorNever
)

// StreamConfig says how lines look. The zero value works.
type StreamConfig struct {
	Format   Format            // JSON or Text
	Text     lines.TextOptions // of Text; Color decides about its Color
	Color    Color
	Envelope lines.Options // of JSON

	MinBackoff, MaxBackoff time.Duration // between attempts; defaults 100 ms and 10 s
	Trip
}

// NewStream returns a destination that writes whole lines to w.
func NewStream(w io.Writer, c *StreamConfig) Destination {
	return nil
}
