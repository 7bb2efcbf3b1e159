// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/msgpack"
)

const (
	streamFirst = 4 << 10   // bytes of a stream's buffer at first
	streamLarge = 256 << 10 // and where much comes at once
)

// A lineStream makes chunks of the lines of one connection.
//
//	buf  ┌── stored lines ──┬─ whole lines, a chunk ─┬─ begun ─┬── free ──┐
//	     0                                           r         w
type lineStream struct {
	in     *lineInput
	peer   string
	reader *lines.Reader
	last   atomic.Int64 // when bytes came last, in nanoseconds since 1970

	buf      []byte
	r, w     int
	held     int  // of the memory of all streams
	skipping bool // the rest of a line that was cut

	chunks []*forward.Chunk
	ends   []int // of each chunk's entries, which may move until all are there
}

// entryBuffers hold the entries of one read, until they are stored.
var entryBuffers = sync.Pool{New: func() any { return new([]byte) }}

func newLineStream(in *lineInput, peer string) *lineStream {
	reader, _ := lines.NewReader(&in.options) // the options were looked at when the URL was
	s := &lineStream{in: in, peer: peer, reader: reader, buf: make([]byte, streamFirst)}
	s.last.Store(time.Now().UnixNano())
	return s
}

// run stores the lines of r until it ends. What has no newline at the end is a line, too.
func (s *lineStream) run(ctx context.Context, r io.Reader, sink Sink) error {
	defer func() { s.in.memory.held.Add(-int64(s.held)) }()
	for {
		n, err := r.Read(s.buf[s.w:])
		now := time.Now()
		if n > 0 {
			s.last.Store(now.UnixNano())
			s.in.bytes.Add(int64(n))
		}
		s.w += n
		if serr := s.store(ctx, sink, now, err != nil); serr != nil {
			return serr
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.Canceled):
			return nil
		case err != nil:
			return err
		}
	}
}

// store stores the whole lines of the buffer, and makes room behind what is left.
func (s *lineStream) store(ctx context.Context, sink Sink, now time.Time, end bool) error {
	room := entryBuffers.Get().(*[]byte)
	b := (*room)[:0]
	s.chunks, s.ends = s.chunks[:0], s.ends[:0]
	for {
		i := bytes.IndexByte(s.buf[s.r:s.w], '\n')
		if i < 0 {
			break
		}
		line := s.buf[s.r : s.r+i]
		s.r += i + 1
		b = s.take(b, line, now)
	}
	full := s.r == 0 && s.w == len(s.buf)
	switch {
	case s.skipping:
		s.r = s.w
	case s.tooLong(s.buf[s.r:s.w]), full && !s.grow():
		b = s.entry(b, s.buf[s.r:min(s.w, s.r+s.in.maxLine)], now, true)
		s.r, s.skipping = s.w, true
	case end && s.r < s.w:
		b = s.take(b, s.buf[s.r:s.w], now)
		s.r = s.w
	}
	err := s.hand(ctx, sink, b)
	if cap(b) <= 4*streamLarge {
		*room = b[:0]
		entryBuffers.Put(room)
	}
	filled := s.w == len(s.buf)
	s.w = copy(s.buf, s.buf[s.r:s.w])
	s.r = 0
	switch {
	case filled && len(s.buf) < streamLarge:
		s.grow()
	case len(s.buf) > streamLarge && s.w <= streamLarge/2:
		s.shrink()
	}
	return err
}

// tooLong tells whether a line that has begun is too long, whatever follows: its end may still be
// CRLF.
func (s *lineStream) tooLong(begun []byte) bool {
	n := len(begun) - s.in.maxLine
	return n > 1 || n == 1 && begun[len(begun)-1] != '\r'
}

// grow makes the buffer twice as large, if there is memory for it.
func (s *lineStream) grow() bool {
	n := len(s.buf)
	if !s.in.memory.take(n) {
		return false
	}
	s.held += n
	s.buf = append(make([]byte, 0, 2*n), s.buf...)[:2*n]
	return true
}

// shrink gives back the memory of a long line: a connection may be silent from now on.
func (s *lineStream) shrink() {
	n := len(s.buf) - streamLarge
	s.buf = append(make([]byte, 0, streamLarge), s.buf[:s.w]...)[:streamLarge]
	s.held -= n
	s.in.memory.held.Add(-int64(n))
}

// take appends the entry of a line, unless it is blank, or the end of one that was cut.
func (s *lineStream) take(b, line []byte, now time.Time) []byte {
	if s.skipping {
		s.skipping = false
		return b
	}
	line = bytes.TrimSuffix(line, []byte{'\r'})
	switch {
	case len(line) > s.in.maxLine: // also one of blanks: it may have come in pieces, and be cut by now
		return s.entry(b, line[:s.in.maxLine], now, true)
	case len(bytes.TrimSpace(line)) == 0:
		s.in.blank.Add(1)
		return b
	}
	return s.entry(b, line, now, false)
}

// entry appends the entry of a line to the chunk of its tag. A line that was cut is text, and says
// so.
func (s *lineStream) entry(b, line []byte, now time.Time, cut bool) []byte {
	tag, at := s.in.tag, len(b)
	if cut {
		b, _ = s.reader.AppendEntryAs(lines.FormatVerbatim, b, line, now)
		b = addMember(b, at, "truncated", msgpack.AppendBool(nil, true))
		s.tellCut()
	} else {
		var e lines.Event
		b, e = s.reader.AppendEntryAs(s.in.format, b, line, now)
		if e.Broken != nil {
			s.tellBroken(e.Broken)
		}
		if e.Tagged == lines.FindingSaid {
			if n := len(s.chunks); n > 0 && s.chunks[n-1].Tag == string(e.Tag) {
				tag = s.chunks[n-1].Tag // no copy
			} else {
				tag = string(e.Tag)
			}
		}
	}
	if s.in.peerKey != "" {
		b = addMember(b, at, s.in.peerKey, msgpack.AppendString(nil, s.peer))
	}
	n := len(s.chunks)
	if n == 0 || s.chunks[n-1].Tag != tag {
		s.chunks, s.ends = append(s.chunks, &forward.Chunk{Tag: tag}), append(s.ends, 0)
		n++
	}
	s.chunks[n-1].Events++
	s.ends[n-1] = len(b)
	return b
}

// hand stores the chunks.
func (s *lineStream) hand(ctx context.Context, sink Sink, b []byte) error {
	from := 0
	for i, c := range s.chunks {
		c.Entries, from = b[from:s.ends[i]], s.ends[i]
	}
	if len(s.chunks) == 0 {
		return nil
	}
	_, err := sink.Store(ctx, s.chunks, nil)
	return err
}

// addMember adds a member to the record of the entry at b[at:], whose last value the record is.
func addMember(b []byte, at int, key string, value []byte) []byte {
	entries := forward.ReadEntries(b[at:])
	e, ok := entries.Next()
	if !ok {
		return b
	}
	t, size, err := msgpack.ReadToken(e.Record)
	if err != nil {
		return b
	}
	start := len(b) - len(e.Record)
	var head [5]byte
	header := msgpack.AppendMapHeader(head[:0], t.Len+1)
	if len(header) > size {
		b = append(b, header[size:]...)
		copy(b[start+len(header):], b[start+size:])
	}
	copy(b[start:], header)
	return append(msgpack.AppendString(b, key), value...)
}

// tellCut counts a line that was cut, and tells of it.
func (s *lineStream) tellCut() {
	s.in.cut.Add(1)
	if leftOut, ok := s.in.reporter.take(codes.LineCut); ok {
		s.tell(codes.LineCut, leftOut, "cut, and marked",
			fmt.Errorf("a line of more than %d bytes, or more than there is memory for", min(s.in.maxLine, len(s.buf))))
	}
}

// tellBroken counts a line that should have been JSON, and tells of it.
func (s *lineStream) tellBroken(err error) {
	s.in.broken.Add(1)
	if leftOut, ok := s.in.reporter.take(codes.LineUnparsed); ok {
		s.tell(codes.LineUnparsed, leftOut, "kept as text",
			fmt.Errorf("a line that begins as a JSON object, and is none: %w", err))
	}
}

func (s *lineStream) tell(code codes.Code, leftOut int, fate string, err error) {
	code.Warn(s.in.reporter.log, "bad input",
		withLeftOut(leftOut, "peer", s.peer, "input", s.in.name, "fate", fate, "error", err)...)
}
