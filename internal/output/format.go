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
	JSON Format = iota
	Text
)

// renderer appends the line of one event, its newline included; see lines.Text.
type renderer interface {
	AppendLine(dst []byte, tag string, entry forward.Entry) []byte
	AppendNext(dst []byte, tag string, entries []byte) (out []byte, n int)
	WriteLong(w io.Writer, tag string, l *forward.Long, record lines.Record) error
}

// appendNext appends the line of the first of packed entries, and returns what it takes. It takes
// all where none can be read: the error says so.
func appendNext(r renderer, dst []byte, tag string, entries []byte) (_ []byte, n int, err error) {
	if dst, n = r.AppendNext(dst, tag, entries); n > 0 {
		return dst, n, nil
	}
	reader := forward.ReadEntries(entries)
	e, ok := reader.Next()
	if !ok {
		return dst, len(entries), reader.Err()
	}
	return r.AppendLine(dst, tag, e), len(e.Raw), nil
}

func (f Format) renderer(envelope lines.Options, text *lines.TextOptions, omitZero bool) (renderer, error) {
	if f == Text {
		return lines.NewText(text), nil
	}
	envelope.OmitZero = omitZero
	return lines.NewEncoder(&envelope)
}
