// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/merge"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/msgpack"
)

// A mergeReader makes records of merged lines. The merge has found their times, in more formats
// than a reader knows; what it knows it takes out of the record.
type mergeReader struct {
	timeKey      string
	json, logfmt []*lines.Reader // tried in turn for the time's key and its format
	record       []byte
}

func newMergeReader(timeKey, tagKey string) (*mergeReader, error) {
	r := &mergeReader{timeKey: timeKey}
	keys := []string{timeKey}
	if timeKey == "time" {
		keys = append(keys, "ts")
	}
	for i, key := range keys {
		for _, format := range []string{"rfc3339", "unix"} { // any number will do
			reader, err := lines.NewReader(&lines.ReadOptions{Time: key, TimeFormat: format, Tag: tagKey})
			if err != nil {
				return nil, err
			}
			r.logfmt = append(r.logfmt, reader)
			if i == 0 {
				r.json = append(r.json, reader)
			}
		}
	}
	return r, nil
}

// read returns the record and the tag of a line, both until the next call, and what the line is.
func (r *mergeReader) read(line []byte) (record []byte, e lines.Event, format string) {
	format = merge.FormatOf(line, r.timeKey)
	switch format {
	case merge.JSON:
		for _, reader := range r.json {
			if r.record, e = reader.AppendRecord(r.record[:0], line); e.Time == lines.FindingSaid || e.Broken != nil {
				break
			}
		}
	case merge.Logfmt:
		for _, reader := range r.logfmt {
			if r.record, e = reader.AppendLogfmt(r.record[:0], line); e.Time == lines.FindingSaid {
				break
			}
		}
	default:
		r.record = r.json[0].AppendText(r.record[:0], line)
	}
	return r.record, e, format
}

// secondsOf is a time in nanoseconds as entries have it.
func secondsOf(ns int64) (sec int64, nsec uint32) {
	sec, rest := ns/1_000_000_000, ns%1_000_000_000
	if rest < 0 {
		return sec - 1, uint32(rest + 1_000_000_000)
	}
	return sec, uint32(rest)
}

// A mergeText writes merged lines for people: JSON and logfmt as the logger's text, text as it is,
// but for what would move a terminal's cursor.
type mergeText struct {
	reader       *mergeReader
	w            *bufio.Writer
	tagged, bare *lines.Text // with a tag, and without one
	line         []byte
}

func newMergeText(reader *mergeReader, w io.Writer) *mergeText {
	return &mergeText{
		reader: reader, w: bufio.NewWriterSize(w, 64<<10),
		tagged: newText(w, lines.StdFlags|lines.Tag), bare: newText(w, lines.StdFlags),
	}
}

// newText makes text of events, coloured if w is a terminal that wants it.
func newText(w io.Writer, f lines.Flags) *lines.Text {
	color := openTerminal(w) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return lines.NewText(&lines.TextOptions{Flags: f, Color: color})
}

// Line implements merge.Lines.
func (m *mergeText) Line(ns int64, line []byte) error {
	record, e, format := m.reader.read(line)
	entry := forward.Entry{Record: record}
	entry.Sec, entry.Nsec = secondsOf(ns)
	switch {
	case format == merge.Text:
		m.line = appendText(m.line[:0], line)
	case e.Tagged == lines.FindingSaid:
		m.line = m.tagged.AppendLine(m.line[:0], string(e.Tag), entry)
	default:
		m.line = m.bare.AppendLine(m.line[:0], "", entry)
	}
	_, err := m.w.Write(m.line)
	return err
}

// appendText appends a line of text: its tabs stay what they are.
func appendText(dst, line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	for i := bytes.IndexByte(line, '\t'); i >= 0; i = bytes.IndexByte(line, '\t') {
		dst = append(lines.AppendEscaped(dst, line[:i]), '\t')
		line = line[i+1:]
	}
	return append(lines.AppendEscaped(dst, line), '\n')
}

// Flush implements merge.Lines.
func (m *mergeText) Flush() error { return m.w.Flush() }

// A mergeSender sends merged lines to a Forward server. While a batch is on its way the next one
// gathers.
type mergeSender struct {
	ctx     context.Context // ends what is sent
	timeout time.Duration
	client  *forward.Client
	server  *reach
	reader  *mergeReader
	tag     string // of lines that have none

	entry []byte
	batch batch
	sent  chan mergeSent // nil: nothing is on its way
	acked int
}

type mergeSent struct {
	acked int
	err   error
}

// Line implements merge.Lines.
func (m *mergeSender) Line(ns int64, line []byte) error {
	record, e, _ := m.reader.read(line)
	m.entry = msgpack.AppendArrayHeader(m.entry[:0], 2)
	switch sec, nsec := secondsOf(ns); {
	case 0 <= sec && sec <= math.MaxUint32:
		m.entry = forward.AppendEventTime(m.entry, sec, nsec)
	case nsec == 0:
		m.entry = msgpack.AppendInt(m.entry, sec)
	default: // as send does it
		m.entry = msgpack.AppendFloat64(m.entry, float64(sec)+float64(nsec)/1e9)
	}
	m.entry = append(m.entry, record...)
	m.batch.add(m.entry, &e, m.tag)
	if m.batch.size >= maxBatch {
		return m.begin()
	}
	return nil
}

// Flush implements merge.Lines.
func (m *mergeSender) Flush() error { return m.begin() }

// begin sends what has gathered, once what is on its way is acked.
func (m *mergeSender) begin() error {
	if err := m.end(); err != nil || m.batch.events == 0 {
		return err
	}
	b := m.batch
	m.batch = batch{}
	m.sent = make(chan mergeSent, 1)
	go func() { m.sent <- m.send(b) }()
	return nil
}

// end waits for the acks of what is on its way.
func (m *mergeSender) end() error {
	if m.sent == nil {
		return nil
	}
	s := <-m.sent
	m.sent = nil
	m.acked += s.acked
	return s.err
}

func (m *mergeSender) send(b batch) (s mergeSent) {
	s.acked, s.err = sendBatch(m.ctx, m.client, m.server, m.timeout, &b)
	return s
}
