// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bufio"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// streamWindow is how much of a Stream is in memory: a value that fits is had as a whole.
const streamWindow = 64 << 10

// A Stream reads values of any length with a window of 64 KiB. Its errors are those of the reader,
// io.ErrUnexpectedEOF where the stream ends within a value, and those of ReadToken.
type Stream struct {
	r    io.Reader
	buf  []byte
	i, n int // buf[i:n] is read and not used
	err  error
}

// NewStream returns a Stream of what r reads.
func NewStream(r io.Reader) *Stream { return newStream(r, streamWindow) }

func newStream(r io.Reader, window int) *Stream { return &Stream{r: r, buf: make([]byte, window)} }

// fill reads until there are k bytes, at most a window, or the stream ends.
func (s *Stream) fill(k int) []byte {
	if s.n-s.i < k {
		s.n = copy(s.buf, s.buf[s.i:s.n])
		s.i = 0
	}
	for s.n-s.i < k && s.err == nil {
		var n int
		n, s.err = s.r.Read(s.buf[s.n:])
		s.n += n
	}
	return s.buf[s.i:s.n]
}

// short is why there is not more.
func (s *Stream) short() error {
	if s.err == nil || errors.Is(s.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return s.err
}

// Token reads the head of the next value: all of it but the payload of a str, bin or ext, or the
// elements of an array or map.
func (s *Stream) Token() (Token, error) {
	t, n, err := ReadToken(s.fill(16))
	if errors.Is(err, ErrShort) {
		err = s.short()
	}
	s.i += n
	return t, err
}

// Value returns the next value if it fits into the window, and goes on behind it. b is valid until
// the next call.
func (s *Stream) Value() (b []byte, ok bool) {
	b = s.buf[s.i:s.n]
	n, err := Skip(b)
	if err != nil {
		if b = s.fill(len(s.buf)); len(b) == 0 {
			return nil, false
		}
		if n, err = Skip(b); err != nil {
			return nil, false
		}
	}
	s.i += n
	return b[:n:n], true
}

// Payload returns the next bytes of a payload of which so many are left: some of them, valid until
// the next call. What it returns of a text ends between two runes.
func (s *Stream) Payload(left int, text bool) ([]byte, error) {
	b := s.fill(min(left, len(s.buf)/2))
	if len(b) >= left {
		b = b[:left]
	} else {
		if len(b) < utf8.UTFMax {
			return nil, s.short()
		}
		if text {
			b = b[:lastRune(b)]
		}
	}
	s.i += len(b)
	return b, nil
}

// lastRune is where the last rune of b begins if it may be cut off, else the end of b, which has at
// least four bytes.
func lastRune(b []byte) int {
	for i := len(b) - 1; i >= len(b)-utf8.UTFMax+1; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return i
			}
			break
		}
	}
	return len(b)
}

// CopyValue goes behind the next value, and writes its bytes to w.
func (s *Stream) CopyValue(w io.Writer) error {
	var scan Scanner
	for {
		b := s.fill(1)
		if len(b) == 0 {
			return s.short()
		}
		n, done, err := scan.Scan(b)
		if err != nil {
			return err
		}
		s.i += n
		if _, err := w.Write(b[:n]); err != nil || done {
			return err
		}
	}
}

// WriteJSONPairs writes the map that streams begin with as AppendJSONPairs does, whatever its
// length. open returns a stream from the start; it may be called twice. A key that is an array or a
// map and longer than 64 KiB is written as its MessagePack, "msgpack:<base64>". A value that nests
// deeper than the limit is an error; that of w or a stream is returned as it is.
func WriteJSONPairs(w *bufio.Writer, open func() (io.ReadCloser, error), reserved []string, ext ExtJSON) error {
	x := jsonWriter{w: w, open: open, window: streamWindow, t: transcoder{reserved: reserved, ext: ext}}
	return x.pairs()
}

// pairs is WriteJSONPairs.
func (x *jsonWriter) pairs() error {
	r, err := x.open()
	if err != nil {
		return err
	}
	defer r.Close()
	x.s = newStream(r, x.window)
	t, err := x.s.Token()
	if err != nil {
		return err
	}
	if t.Kind != KindMap {
		return ErrKind
	}
	return x.members(t.Len, 1)
}

// jsonWriter is what WriteJSONPairs works with. What fits into the window is left to the
// transcoder.
type jsonWriter struct {
	s     *Stream
	w     *bufio.Writer
	open  func() (io.ReadCloser, error)
	t     transcoder // what is known of reserved names
	taken []byte     // pairs whose keys matter for them
	count int        // of taken
	known bool       // taken is
	room  []byte

	window int // streamWindow
}

func (x *jsonWriter) put(b []byte) error {
	_, err := x.w.Write(b)
	return err
}

// members writes n pairs. Those of the outermost map have depth 1.
func (x *jsonWriter) members(n, depth int) error {
	for i := range n {
		if i > 0 {
			x.w.WriteByte(',') //nolint:errcheck // the Writer keeps it
		}
		if err := x.key(depth); err != nil {
			return err
		}
		x.w.WriteByte(':') //nolint:errcheck // likewise
		if err := x.value(depth); err != nil {
			return err
		}
	}
	return nil
}

func (x *jsonWriter) value(depth int) error {
	if b, ok := x.s.Value(); ok {
		return x.small(b)
	}
	t, err := x.s.Token()
	if err != nil {
		return err
	}
	switch t.Kind {
	case KindStr, KindBin:
		return x.text(t.Len)
	case KindExt:
		return x.extension(t)
	case KindArray, KindMap:
	default:
		return ErrInvalid // nothing else is longer than the window
	}
	if depth >= DefaultDepth {
		return errDepth()
	}
	brackets := "[]"
	if t.Kind == KindMap {
		brackets = "{}"
	}
	x.w.WriteByte(brackets[0]) //nolint:errcheck // the Writer keeps it
	if t.Kind == KindMap {
		err = x.members(t.Len, depth+1)
	} else {
		for i := range t.Len {
			if i > 0 {
				x.w.WriteByte(',') //nolint:errcheck // likewise
			}
			if err = x.value(depth + 1); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	return x.w.WriteByte(brackets[1])
}

// small writes a value that is there as a whole.
func (x *jsonWriter) small(b []byte) error {
	out, _, err := AppendJSON(x.room[:0], b, x.t.ext)
	x.room = out
	if err != nil {
		return err
	}
	return x.put(out)
}

// text writes a str or bin of n bytes.
func (x *jsonWriter) text(n int) error {
	x.w.WriteByte('"') //nolint:errcheck // the Writer keeps it
	for n > 0 {
		b, err := x.s.Payload(n, true)
		if err != nil {
			return err
		}
		n -= len(b)
		x.room = AppendJSONString(x.room[:0], b)
		if err := x.put(x.room[1 : len(x.room)-1]); err != nil {
			return err
		}
	}
	return x.w.WriteByte('"')
}

func (x *jsonWriter) extension(t Token) error {
	x.w.WriteString(`"ext:` + strconv.Itoa(int(t.Ext)) + ":") //nolint:errcheck // the Writer keeps it
	if err := x.s.WriteBase64(x.w, t.Len); err != nil {
		return err
	}
	return x.w.WriteByte('"')
}

// WriteBase64 writes the next n bytes.
func (s *Stream) WriteBase64(w io.Writer, n int) error {
	e := base64.NewEncoder(base64.StdEncoding, w)
	for n > 0 {
		b, err := s.Payload(n, false)
		if err != nil {
			return err
		}
		n -= len(b)
		if _, err := e.Write(b); err != nil {
			return err
		}
	}
	return e.Close()
}

// key writes the next value as a key.
func (x *jsonWriter) key(depth int) error {
	if b, ok := x.s.Value(); ok {
		pair := append(append([]byte{codeFixMap | 1}, b...), codeNil)
		out, _, err := AppendJSON(x.room[:0], pair, x.t.ext)
		x.room = out
		if err != nil {
			return err
		}
		name := out[1 : len(out)-len(`:null}`)]
		if depth == 1 {
			if name, err = x.rename(name); err != nil {
				return err
			}
		}
		return x.put(name)
	}
	t, n, err := ReadToken(x.s.fill(16))
	switch {
	case err != nil:
		_, err = x.s.Token()
		return err
	case t.Kind == KindStr, t.Kind == KindBin:
		x.s.i += n
		return x.text(t.Len)
	case t.Kind == KindExt:
		x.s.i += n
		return x.extension(t)
	}
	x.w.WriteString(`"msgpack:`) //nolint:errcheck // the Writer keeps it
	e := base64.NewEncoder(base64.StdEncoding, x.w)
	if err := x.s.CopyValue(e); err != nil {
		return err
	}
	if err := e.Close(); err != nil {
		return err
	}
	return x.w.WriteByte('"')
}

// rename gives a key in quotes its underscores, if it is reserved.
func (x *jsonWriter) rename(name []byte) ([]byte, error) {
	for r, reserved := range x.t.reserved {
		if string(name[1:len(name)-1]) != reserved {
			continue
		}
		suffix := x.t.suffix(r)
		if *suffix == 0 {
			if err := x.look(); err != nil {
				return nil, err
			}
			*suffix = x.t.underscores(reserved, x.taken, x.count)
		}
		out := append([]byte{}, name[:len(name)-1]...)
		for range *suffix {
			out = append(out, '_')
		}
		return append(out, '"'), nil
	}
	return name, nil
}

// look finds the keys of the map that are a reserved name with underscores. Of those with more than
// 63 the longest is enough.
func (x *jsonWriter) look() error {
	if x.known {
		return nil
	}
	r, err := x.open()
	if err != nil {
		return err
	}
	defer r.Close()
	s := newStream(r, x.window)
	t, err := s.Token()
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	longest := map[string]int{}
	for range t.Len {
		if b, ok := s.Value(); !ok {
			err = s.CopyValue(io.Discard)
		} else if k, n, _ := ReadToken(b); k.Kind == KindStr || k.Kind == KindBin {
			for _, name := range x.t.reserved {
				switch more, same := excess(b[n:], name); {
				case !same || more <= 0:
				case more < 64:
					seen[string(b[n:])] = true
				default:
					longest[name] = max(longest[name], more)
				}
			}
		}
		if err == nil {
			err = s.CopyValue(io.Discard)
		}
		if err != nil {
			return err
		}
	}
	for name, n := range longest {
		seen[name+strings.Repeat("_", n)] = true
	}
	for key := range seen {
		x.taken = append(AppendString(x.taken, key), codeNil)
		x.count++
	}
	x.known = true
	return nil
}
