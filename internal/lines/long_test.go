// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// longRecord is a map of the given keys and values.
func longRecord(pairs ...any) []byte {
	b := msgpack.AppendMapHeader(nil, len(pairs)/2)
	for _, v := range pairs {
		switch v := v.(type) {
		case string:
			b = msgpack.AppendString(b, v)
		case []byte:
			b = append(b, v...)
		case int:
			b = msgpack.AppendInt(b, int64(v))
		}
	}
	return b
}

// TestWriteLong: a line written in pieces is the line that is appended, but where the documents say
// otherwise.
func TestWriteLong(t *testing.T) {
	long := strings.Repeat("a long text, \x01\"ä€\\\xff", 5_000)
	list := msgpack.AppendArrayHeader(nil, 30_000)
	for i := range 30_000 {
		list = msgpack.AppendInt(list, int64(i))
	}
	ext := msgpack.AppendExt(nil, 5, []byte(long))
	texts := []*TextOptions{nil, {Color: true}, {Flags: Level | Tag | ShortSource}, {Flags: Source}}
	for name, record := range map[string][]byte{
		"value":   longRecord("a", 1, "pad", long, "b", 2),
		"leveled": longRecord("level", "INFO", "msg", long, "source", "dir/main.go:12", "a", "word", "b", list),
		"late":    longRecord("a", 1, "level", "INFO", "pad", long, "msg", "the message", "b", 3),
		"later":   longRecord("pad", long, "a", 1, "message", long, "msg", "x"),
		"source":  longRecord("msg", "m", "level", "WARN", "source", "a/b/"+long),
		"no text": longRecord("msg", 5, "message", list, "pad", long),
		"taken":   longRecord("time", 1, "pad", long, "time_", 2, "tag", "t"),
		"ext":     longRecord("ext", ext, "k", 1),
	} {
		entry := append(forward.AppendEventTime([]byte{0x92}, 1792375200, 123456789), record...)
		var z forward.Inflater
		p := forward.Pieces{MaxCopied: 1 << 10}
		p.Begin(&z, &forward.Chunk{Tag: "a.b", Entries: entry, Events: 1}, 1<<10)
		if _, _, _, err := p.Next(nil); err != nil || p.Found == nil {
			t.Fatalf("%s: %v, %v", name, p.Found, err)
		}
		l := p.Found
		e, _ := NewEncoder(nil)
		var out bytes.Buffer
		if err := e.WriteLong(&out, "a.b", l, l.Open); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, _, _ := e.AppendRun(nil, "a.b", entry, 0)
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s:\n%.300s, want\n%.300s", name, out.Bytes(), want)
		}
		for _, o := range texts {
			if name == "source" && o != nil && o.Flags.has(ShortSource) {
				continue // of a long one all is written
			}
			x := NewText(o)
			out.Reset()
			if err := x.WriteLong(&out, "a.b", l, l.Open); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, _, _ := x.AppendRun(nil, "a.b", entry, 0)
			if !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%s, %+v: %d bytes, want %d:\n%.300q, want\n%.300q", name, o, out.Len(), len(want),
					out.Bytes(), want)
			}
		}
	}
}

// TestWriteLongErrors: an error of the record or of the writer comes back.
func TestWriteLongErrors(t *testing.T) {
	record := longRecord("pad", strings.Repeat("x", 1<<20))
	cut := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(record[:1000])), nil }
	none := func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }
	e, _ := NewEncoder(nil)
	for _, r := range []interface {
		WriteLong(w io.Writer, tag string, l *forward.Long, record Record) error
	}{e, NewText(nil)} {
		if err := r.WriteLong(io.Discard, "t", &forward.Long{}, cut); err != io.ErrUnexpectedEOF { //nolint:errorlint // as it is
			t.Errorf("cut off: %v", err)
		}
		if err := r.WriteLong(io.Discard, "t", &forward.Long{}, none); err != io.ErrClosedPipe { //nolint:errorlint // likewise
			t.Errorf("no record: %v", err)
		}
	}
}
