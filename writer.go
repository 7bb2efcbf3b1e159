// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/internal/mover"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// maxLine is the longest line that a Writer takes as one event.
const maxLine = 64 << 10

// LineOptions says what the lines given to a writer say of their events. The zero value works:
// nothing.
type LineOptions struct {
	// TimeKey names the member of a line that is JSON which becomes the time of the event, and is
	// taken out of the record. Empty: none; events have the time of the Write.
	TimeKey string
	// TimeFormat is how it stands there: rfc3339 (the default), seconds since 1970 as a number or
	// text (unix), thousandths, millionths or billionths of them (unix_ms, unix_us, unix_ns), or a
	// layout of package time, of UTC unless it has a zone.
	TimeFormat string
	// TagKey names the member that becomes the event's tag: as it stands, as that of Post. Empty:
	// none; events have Options.Tag.
	TagKey string
}

// Writer returns a writer of lines, for programs that print: each line is an event. A line that is
// a JSON object is the record, any other is {"message": line}; default fields and those of With
// come first. Like Post it knows no level. What Write is given is copied; a line may come in
// pieces; blank lines are left out, and so is the carriage return at an end. What comes without a
// newline waits for the rest of its line, until Close. A line longer than 64 KiB becomes several
// events of text; JSON that nests deeper than 128 levels, open groups included, is text, too.
//
// Write returns the error of the first event that was not accepted, after it has tried all.
func (l *Logger) Writer() io.Writer {
	w, _ := l.LineWriter(nil) // the zero value works
	return w
}

// LineWriter is Writer for lines that say the time or the tag of their events, as other loggers
// write them. nil is the default options; an error says what in them cannot be used.
//
// A line that does not say them is an event all the same. A time or tag that cannot be read (in the
// given format, between 1970 and 2106, up to 1 KiB) stays in the record; Diagnostics is told the
// first such line of a writer.
func (l *Logger) LineWriter(o *LineOptions) (io.Writer, error) {
	if o == nil {
		o = &LineOptions{}
	}
	read := lines.ReadOptions{Time: o.TimeKey, TimeFormat: o.TimeFormat, Tag: o.TagKey, EventTime: true}
	if !l.off() {
		// With the open groups around it, no receiver would read a deeper record: then the chunk
		// that it is in would be sent for ever, and all else behind it.
		read.Depth = msgpack.DefaultDepth - len(l.groups)
	}
	reader, err := lines.NewReader(&read)
	if err != nil {
		return nil, fmt.Errorf("spillway: LineOptions: %w", err)
	}
	if l.off() {
		return io.Discard, nil
	}
	return &lineWriter{l: l, reader: reader, turn: make(chan struct{}, 1)}, nil
}

type lineWriter struct {
	l      *Logger
	turn   chan struct{} // holds one while somebody uses what is below; Close does not wait for it for ever
	reader *lines.Reader
	record []byte // of the line being posted
	rest   []byte // the beginning of a line
	pieces bool   // of a line the beginning of which was too long and is posted already
	told   bool   // that a line's time or tag cannot be read
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	n := len(p)
	had := len(w.rest) > 0
	var first error
	for len(p) > 0 {
		piece, rest, whole := bytes.Cut(p, []byte{'\n'})
		p = rest
		if err := w.take(context.Background(), piece, whole); first == nil {
			first = err
		}
	}
	if has := len(w.rest) > 0; (has || had) && !w.l.c.rests.note(w, has) && has {
		w.rest, w.pieces = nil, false // nobody would ever post it
		w.l.c.to.Miss(mover.Closed, 1)
		if first == nil {
			first = ErrClosed
		}
	}
	return n, first
}

// take takes a piece of a line, which ends there if it is whole.
func (w *lineWriter) take(ctx context.Context, piece []byte, whole bool) (first error) {
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for limit := w.l.c.lineMax; len(w.rest)+len(piece) > limit; {
		w.pieces = true
		k := limit - len(w.rest)
		w.rest = append(w.rest, piece[:k]...)
		piece = piece[k:]
		k = lines.WholeRunes(w.rest)
		note(w.post(ctx, w.rest[:k]))
		w.rest = append(w.rest[:0], w.rest[k:]...)
	}
	if !whole {
		w.rest = append(w.rest, piece...)
		return first
	}
	if len(w.rest) > 0 {
		piece = append(w.rest, piece...)
		w.rest = piece[:0]
	}
	piece = bytes.TrimSuffix(piece, []byte{'\r'})
	if w.pieces && len(piece) > 0 || len(bytes.TrimSpace(piece)) > 0 {
		note(w.post(ctx, piece))
	}
	w.pieces = false
	return first
}

// rests are the writers that hold the beginning of a line.
type rests struct {
	mu     sync.Mutex
	of     map[*lineWriter]struct{}
	closed bool
}

// note returns false when it is too late: Close has posted what writers held.
func (r *rests) note(w *lineWriter, has bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.of == nil {
		r.of = map[*lineWriter]struct{}{}
	}
	if has {
		r.of[w] = struct{}{}
	} else {
		delete(r.of, w)
	}
	return true
}

// post posts what has no newline. A Write that does not return by ctx keeps what its writer holds.
func (r *rests) post(ctx context.Context) {
	r.mu.Lock()
	of := r.of
	r.of, r.closed = nil, true
	r.mu.Unlock()
	for w := range of {
		select {
		case w.turn <- struct{}{}:
			_ = w.take(ctx, nil, true) // counted
			<-w.turn
		case <-ctx.Done():
		}
	}
}

// post posts one line, or a piece of one as text.
func (w *lineWriter) post(ctx context.Context, line []byte) error {
	var said lines.Event
	if w.pieces {
		w.record = w.reader.AppendText(w.record[:0], line)
	} else {
		w.record, said = w.reader.AppendRecord(w.record[:0], line)
	}
	w.tell(&said)
	c := w.l.c
	e := c.encoder()
	b, t := e.buf[:0], int64(ring.Now)
	if said.Tagged == lines.FindingSaid {
		b = window.AppendPayload(b, string(said.Tag))
	} else {
		b = append(b, c.tagged...)
	}
	if said.Time == lines.FindingSaid {
		t = said.Sec*int64(time.Second) + int64(said.Nsec)
	}
	at := len(b)
	b, err := w.l.postInto(b, at, func(b []byte) ([]byte, error) { return append(b, w.record...), nil })
	if err == nil {
		err = c.append(ctx, e, t, c.keepsPosts(), b)
	}
	c.done(e, b)
	if cap(w.record) > maxPooled {
		w.record = nil
	}
	return err
}

// tell tells, once, that something in a line cannot be read.
func (w *lineWriter) tell(said *lines.Event) {
	if w.told || said.Time != lines.FindingUnreadable && said.Tagged != lines.FindingUnreadable {
		return
	}
	w.told = true
	what := "time"
	if said.Time != lines.FindingUnreadable {
		what = "tag"
	}
	w.l.c.diagnostics.report(fmt.Errorf("spillway: the %s of a line cannot be read and stays in the record; others of this writer are not told", what))
}
