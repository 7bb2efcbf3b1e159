// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// Format is how events become lines.
type Format uint8

// JSON is one object a line, as the collector writes it; Text is for people.
const (
	JSON Format = iota
	Text
)

// renderer appends the line of one event, its newline included.
type renderer interface {
	AppendLine(dst []byte, tag string, entry forward.Entry) []byte
}

func (f Format) renderer(envelope *lines.Options, text *lines.TextOptions) (renderer, error) {
	if f == Text {
		return lines.NewText(text), nil
	}
	o := *envelope
	o.OmitZero = true
	return lines.NewEncoder(&o)
}
