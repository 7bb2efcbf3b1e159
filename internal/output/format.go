// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
)

// Format is how events become lines.
type Format uint8

// JSON is one object a line, as the collector writes it; Text is for people.
const (
	FormatJSON Format = iota
	FormatText
)

// renderer appends the line of one event, its newline included; see lines.Text.
type renderer interface {
	AppendLine(dst []byte, tag string, entry forward.Entry) []byte
	AppendRun(dst []byte, tag string, entries []byte, limit int) (out []byte, n, events int)
	WriteLong(w io.Writer, tag string, l *forward.Long, record lines.Record) error
}

// appendRun appends the lines of the first of packed entries, as AppendRun does, and returns what
// they take and how many they are. It takes all where none can be read: the error says so.
func appendRun(r renderer, dst []byte, tag string, entries []byte, limit int) (_ []byte, n, events int, err error) {
	if dst, n, events = r.AppendRun(dst, tag, entries, limit); n > 0 {
		return dst, n, events, nil
	}
	reader := forward.ReadEntries(entries)
	e, ok := reader.Next()
	if !ok {
		return dst, len(entries), 0, reader.Err()
	}
	return r.AppendLine(dst, tag, e), len(e.Raw), 1, nil
}

func (f Format) renderer(envelope lines.Options, text *lines.TextOptions, omitZero bool) (renderer, error) {
	if f == FormatText {
		return lines.NewText(text), nil
	}
	envelope.OmitZero = omitZero
	return lines.NewEncoder(&envelope)
}
