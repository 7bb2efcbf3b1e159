// SPDX-License-Identifier: Apache-2.0

package spillway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/ring"
)

// maxLine is the longest line that a Writer takes as one event.
const maxLine = 64 << 10

// Writer returns a writer of lines, for programs that print: each line is an event. A line that is a JSON object is the record, any
// other is {"message": line}; default fields and those of With come first. Like Post it knows no level. What Write is given is copied; a
// line may come in pieces; blank lines are left out, and so is the carriage return at an end. What comes without a newline waits for the
// rest of its line, until Close. A line longer than 64 KiB becomes several events of text; JSON that nests deeper than 128 levels, open groups
// included, is text, too.
//
// Write returns the error of the first event that was not accepted, after it has tried all.
func (l *Logger) Writer() io.Writer {
	if l.off() {
		return io.Discard
	}
	return &lineWriter{l: l, turn: make(chan struct{}, 1)}
}

type lineWriter struct {
	l      *Logger
	turn   chan struct{} // holds one while somebody uses what is below; Close does not wait for it for ever
	rest   []byte        // the beginning of a line
	pieces bool          // of a line the beginning of which was too long and is posted already
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
		k = wholeRunes(w.rest)
		note(w.l.postLine(ctx, w.rest[:k], true))
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
	note(w.l.postLine(ctx, piece, w.pieces))
	w.pieces = false
	return first
}

// wholeRunes returns how much of b, which is not empty, ends with a whole rune.
func wholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back < len(b); back++ {
		if i := len(b) - back; utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// rests are the writers that hold the beginning of a line.
type rests struct {
	mu     sync.Mutex
	of     map[*lineWriter]struct{}
	closed bool
}

// note says no when it is too late: Close has posted what writers held.
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

// postLine posts one line, or a piece of one as text.
func (l *Logger) postLine(ctx context.Context, line []byte, text bool) error {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		return nil
	}
	c := l.c
	e := c.encoder()
	b := append(e.buf[:0], c.tagged...)
	at := len(b)
	err := errNoObject
	if !text && trimmed[0] == '{' && trimmed[len(trimmed)-1] == '}' {
		b, err = l.postInto(b, at, func(b []byte) ([]byte, error) { return l.appendObject(b, trimmed) })
	}
	if err != nil {
		b, err = l.postInto(b[:at], at, func(b []byte) ([]byte, error) {
			b = msgpack.AppendMapHeader(b, 1)
			b = msgpack.AppendString(b, "message")
			b = msgpack.AppendStringHeader(b, len(line))
			return append(b, line...), nil
		})
	}
	if err == nil {
		err = c.append(ctx, e, c.tag, at, ring.Now, c.keepsPosts(), b)
	}
	c.done(e, b)
	return err
}

var errNoObject = errors.New("spillway: no JSON object")

// appendObject appends a line that is one JSON object, unless it nests so deep that with the open groups around it no receiver would read the
// record: then the chunk that it is in would be sent for ever, and all else behind it.
func (l *Logger) appendObject(b, line []byte) ([]byte, error) {
	start := len(b)
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	b, err := msgpack.AppendFromJSON(b, dec)
	if err != nil {
		return b, err
	}
	if dec.InputOffset() != int64(len(line)) {
		return b, errNoObject
	}
	if len(l.groups) > 0 {
		_, err = (msgpack.Limits{Depth: msgpack.DefaultDepth - len(l.groups)}).Skip(b[start:])
	}
	return b, err
}
