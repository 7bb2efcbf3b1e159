// SPDX-License-Identifier: Apache-2.0

package lines

import "github.com/spillwaylog/spillway/forward"

// A Text writes events as lines of text. It is not for several goroutines at once.
type Text struct{ o TextOptions }

// NewText returns a Text with options; nil is the default ones.
func NewText(o *TextOptions) *Text {
	t := &Text{}
	if o != nil {
		t.o = *o
	}
	return t
}

// AppendLine appends the line of one event, its newline included. It keeps neither the tag nor the entry.
func (t *Text) AppendLine(dst []byte, tag string, entry forward.Entry) []byte {
	return append(dst, '\n')
}
