// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spillwaylog/spillway/forward"
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
	OmitZero bool          // a line of JSON has no time where it is 0

	MinBackoff, MaxBackoff time.Duration // between attempts; defaults 100 ms and 10 s
	Trip
}

// NewStream returns an output that writes whole lines to w, standard output say, which it never
// closes. A chunk is delivered when w has taken all its lines: at least once, for what a process
// that is killed had written of a chunk comes again.
//
// A short write, and a descriptor that does not block and is full, are gone on with at the next
// byte. A pipe that nobody reads any more is an error like others: the lines wait for a reader. It
// does not end the process, as a write to standard output otherwise would. What goes into a pipe or
// a terminal is written in pieces that the kernel takes as a whole, so that lines of several
// processes do not mix.
//
// An unusable envelope is replaced by the default one, and reported.
func NewStream(w io.Writer, c *StreamConfig) Output {
	if c == nil {
		c = &StreamConfig{}
	}
	text := c.Text
	f, isFile := w.(*os.File)
	text.Color = c.Color == ColorAlways ||
		c.Color == ColorAuto && isFile && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	r, err := c.Format.renderer(c.Envelope, &text, c.OmitZero)
	s := &streamSink{writer: w, renderer: r}
	name := "stream"
	if isFile {
		s.writer = newStdio(f)
		s.atomic = mixes(f)
		name = f.Name()
	}
	if err != nil {
		s.renderer, _ = c.Format.renderer(lines.Options{}, &text, c.OmitZero)
	}
	s.sinkQueue = newQueue(name, s, &c.Trip, c.MinBackoff, c.MaxBackoff)
	if err != nil {
		s.tell(fmt.Errorf("%s: %w", name, err))
	}
	return &streamOutput{s.sinkQueue}
}

// streamOutput is what NewStream returns.
type streamOutput struct{ *sinkQueue }

// SubmitLong implements Longer.
func (o *streamOutput) SubmitLong(_ []byte, c *forward.Chunk, l *forward.Long, done func(Result)) {
	o.submit(ticket{chunk: c, long: l}, done)
}

// Bounds of one write.
const (
	streamBuffer = 64 << 10
	pipeBuf      = 4096 // PIPE_BUF of Linux; what is not longer goes into a pipe in one piece
)

// mixes reports whether others' bytes may come between those of one write.
func mixes(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice|os.ModeSocket) != 0
}

// streamSink is the sink of a stream.
type streamSink struct {
	*sinkQueue
	writer   io.Writer
	renderer renderer
	atomic   bool // pieces of pipeBuf

	buf     []byte // rendered
	written int    // of buf
	long    int64  // bytes of a long line that were in buf so far; 0: it is no line, or over
}

func (s *streamSink) write(jobs []*job, _ bool) ([]byte, error) {
	for _, j := range jobs {
		for !j.rendered {
			if err := s.writeOut(); err != nil {
				return nil, err
			}
			if j.long != nil {
				if err := s.writeLong(j); err != nil {
					return nil, err
				}
				continue
			}
			if !s.extend(j) {
				return nil, errGone
			}
		}
	}
	return nil, s.writeOut()
}

// writeLong writes the one line of a job a piece at a time, and goes on where it stopped.
func (s *streamSink) writeLong(j *job) error {
	j.begun = true
	at := int64(0) // of the line
	err := s.longLine(j, s.renderer)(writerFunc(func(b []byte) (int, error) {
		skip := min(max(s.long-at, 0), int64(len(b)))
		at += int64(len(b))
		if b = b[skip:]; len(b) > 0 {
			s.buf = append(s.buf, b...)
			s.long = at
		}
		return int(skip) + len(b), s.writeOut()
	}))
	if errors.Is(err, errRecord) {
		s.tell(fmt.Errorf("%s: %w", s.name, err))
		j.rejected, err = append(j.rejected, Rejected{Entry: 0, Err: err}), nil
		s.drop()
	}
	if err == nil {
		j.bytes += s.long
		j.rendered, s.long = true, 0
	}
	return err
}

// extend renders entries of a job until the buffer is full.
func (s *streamSink) extend(j *job) bool {
	if !s.acquire() {
		return false
	}
	defer s.give()
	j.begun = true
	for len(s.buf) < streamBuffer && len(j.rest) > 0 {
		out, n, err := j.render(s.renderer, s.buf, streamBuffer, j.rest)
		if err != nil {
			s.tell(fmt.Errorf("%s: what follows cannot be read and is left out: %w", s.name, err))
		}
		s.buf, j.rest = out, j.rest[n:]
	}
	j.rendered = len(j.rest) == 0
	return true
}

// flush does nothing: what is done is with the stream.
func (s *streamSink) flush() error { return nil }

// writeOut writes what is rendered.
func (s *streamSink) writeOut() error {
	for s.written < len(s.buf) {
		piece := s.buf[s.written:]
		if s.atomic {
			piece = piece[:wholeLines(piece)]
		}
		n, err := s.writer.Write(piece)
		s.written += min(max(n, 0), len(piece))
		if err == nil && n < len(piece) {
			err = io.ErrShortWrite
		}
		switch {
		case err == nil:
		case isFull(err):
			if !s.await() {
				return errGone
			}
		case n > 0 && errors.Is(err, io.ErrShortWrite):
		default:
			return err
		}
	}
	s.buf, s.written = s.buf[:0], 0
	if cap(s.buf) > 4*streamBuffer {
		s.buf = nil
	}
	return nil
}

// wholeLines returns how many bytes of whole lines the kernel takes in one piece: one line at
// least.
func wholeLines(b []byte) int {
	if len(b) > pipeBuf {
		if n := bytes.LastIndexByte(b[:pipeBuf], '\n') + 1; n > 0 {
			return n
		}
		if n := bytes.IndexByte(b, '\n') + 1; n > 0 {
			return n
		}
	}
	return len(b)
}

// await waits until the writer may take more, and reports whether to go on.
func (s *streamSink) await() bool {
	const step = 100 * time.Millisecond // after which Close is noticed
	w, ok := s.writer.(*stdio)
	if !ok {
		return s.pause(time.Millisecond)
	}
	w.await(step)
	select {
	case <-s.closing:
		return false
	default:
		return true
	}
}

func (s *streamSink) drop() {
	if s.long > 0 { // what is there of it stays a line
		s.buf, s.written, s.long = append(s.buf[:0], '\n'), 0, 0
		return
	}
	rest := s.buf[s.written:]
	if s.written > 0 && s.buf[s.written-1] != '\n' {
		rest = rest[:bytes.IndexByte(rest, '\n')+1]
	} else {
		rest = nil
	}
	s.buf, s.written = append(s.buf[:0], rest...), 0
}

func (s *streamSink) tick() bool { return false }

func (s *streamSink) close() error { return nil }
