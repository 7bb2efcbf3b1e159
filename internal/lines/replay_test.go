// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// replays are the ways of writing lines that are tried: each has to read what it wrote.
var replays = []struct {
	write Options
	read  ReadOptions
}{
	{Options{}, ReadOptions{Time: "time", Tag: "tag"}},
	{
		Options{Time: "ts", TimeFormat: "unix", Tag: "logger"},
		ReadOptions{Time: "ts", TimeFormat: "unix", Tag: "logger"},
	},
	{Options{TimeFormat: "unix_ms"}, ReadOptions{Time: "time", TimeFormat: "unix_ms", Tag: "tag"}},
	{Options{TimeFormat: "unix_us", Metadata: "tags"}, ReadOptions{Time: "time", TimeFormat: "unix_us", Tag: "tag"}},
	{Options{TimeFormat: "unix_ns", OmitZero: true}, ReadOptions{Time: "time", TimeFormat: "unix_ns", Tag: "tag"}},
	{
		Options{TimeFormat: "02/Jan/2006:15:04:05.000 -0700"},
		ReadOptions{Time: "time", TimeFormat: "02/Jan/2006:15:04:05.000 -0700", Tag: "tag"},
	},
}

// replay wants the line of an entry to become an entry that has the same line. It knows what cannot
// be promised, and reports whether the line was one of those.
func replay(t *testing.T, w *Encoder, r *Reader, tag string, entry forward.Entry) (promised bool) {
	t.Helper()
	line := w.AppendLine(nil, tag, entry)
	text := line[:len(line)-1]
	again, e := r.AppendEntry(nil, text, time.Unix(1, 0))
	if e.Tagged != FindingSaid {
		if len(entry.Meta) > 1 && depth(t, entry.Meta) == msgpack.DefaultDepth {
			return false // as a member of the record it is one level deeper
		}
		if n := len(strings.ToValidUTF8(tag, "")); utf8.ValidString(tag) || n+3*(len(tag)-n) <= forward.MaxTag {
			t.Fatalf("the tag of %q cannot be read: %+v", line, e)
		}
		return false // a tag that is no UTF-8 takes more room when it is
	}
	if e.Time != FindingSaid {
		// Forward cannot say the time 0, nor what the format makes 0 of.
		if sec, nsec, ok := r.format.read(appendTime(w, &entry), nil, false); w.format.kind == number &&
			(!ok || sec != 0 || nsec != 0) ||
			w.format.kind != number && (entry.Sec != 0 || entry.Nsec >= 1e6 || w.format.kind == rfc3339 &&
				entry.Nsec > 0) {
			t.Fatalf("the time of %q cannot be read: %+v", line, e)
		}
		return false
	}
	entries := forward.ReadEntries(again)
	got, ok := entries.Next()
	if !ok || len(got.Raw) != len(again) {
		t.Fatalf("%q becomes no entry: %x: %v", line, again, entries.Err())
	}
	if back := w.AppendLine(nil, string(e.Tag), got); !bytes.Equal(back, line) {
		t.Fatalf("the line\n%s comes back as\n%s", line, back)
	}
	return true
}

func appendTime(w *Encoder, e *forward.Entry) []byte {
	b, _, _ := w.format.append(nil, e.Sec, e.Nsec)
	return b
}

// depth is how many arrays and maps stand in each other.
func depth(t *testing.T, b []byte) int {
	for n := 1; n < msgpack.DefaultDepth; n++ {
		if _, err := (msgpack.Limits{Depth: n}).Skip(b); err == nil {
			return n
		}
	}
	return msgpack.DefaultDepth
}

// anyValues makes values of all kinds.
type anyValues struct{ *rand.Rand }

var odd = []string{
	"", "time", "time_", "time__", "tag", "tag_", "metadata", "metadata_", "ts", "undecodable", "a\xff",
	"\xed\xa0\x80", "\ufffd", "\u2028", "\"\\\n\x00\x7f", "日本 🙂", "-", `\ufffd`,
}

func (r anyValues) text() string {
	s := odd[r.IntN(len(odd))]
	if r.IntN(4) == 0 {
		s += odd[r.IntN(len(odd))]
	}
	return s
}

func (r anyValues) value(b []byte, levels int) []byte {
	kinds := 13
	if levels == 0 {
		kinds = 11
	}
	switch r.IntN(kinds) {
	case 0:
		return msgpack.AppendNil(b)
	case 1:
		return msgpack.AppendBool(b, r.IntN(2) == 0)
	case 2:
		return msgpack.AppendInt(b, int64(r.Uint64())>>r.IntN(64))
	case 3:
		return msgpack.AppendUint(b, r.Uint64()>>r.IntN(64))
	case 4:
		return msgpack.AppendFloat64(b, math.Float64frombits(r.Uint64()))
	case 5:
		special := []float64{
			0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 1e15, 1e20, 1e21,
			1e-6, 1e-7, 1 << 53, 1 << 63, 1 << 64, -1 << 63, 0.1, 5e-324, math.MaxFloat64,
		}
		return msgpack.AppendFloat64(b, special[r.IntN(len(special))])
	case 6:
		return msgpack.AppendFloat32(b, math.Float32frombits(r.Uint32()))
	case 7:
		return msgpack.AppendString(b, r.text())
	case 8:
		return msgpack.AppendBin(b, []byte(r.text()))
	case 9:
		return msgpack.AppendExt(b, int8(r.IntN(256)-128), []byte(r.text()))
	case 10:
		return forward.AppendEventTime(b, int64(r.Uint32()), uint32(r.IntN(nanos)))
	case 11:
		n := r.IntN(4)
		b = msgpack.AppendArrayHeader(b, n)
		for range n {
			b = r.value(b, levels-1)
		}
		return b
	}
	return r.object(b, levels)
}

func (r anyValues) object(b []byte, levels int) []byte {
	n := r.IntN(6)
	if r.IntN(20) == 0 {
		n = 20
	}
	b = msgpack.AppendMapHeader(b, n)
	for range n {
		if r.IntN(8) == 0 {
			b = r.value(b, levels-1)
		} else {
			b = msgpack.AppendString(b, r.text())
		}
		b = r.value(b, levels-1)
	}
	return b
}

// time appends a time of any kind that an entry can have.
func (r anyValues) time(b []byte) []byte {
	switch r.IntN(6) {
	case 0:
		return msgpack.AppendInt(b, int64(r.Uint64())>>r.IntN(64))
	case 1:
		return msgpack.AppendFloat64(b, (r.Float64()-0.5)*math.Pow(2, float64(r.IntN(55))))
	case 2:
		at := []int64{
			0, yearZero, yearZero - 1, year10000, year10000 - 1, math.MaxInt64, math.MinInt64, -1,
			math.MaxUint32 + 1,
		}
		return msgpack.AppendInt(b, at[r.IntN(len(at))])
	}
	return forward.AppendEventTime(b, int64(r.Uint32())>>r.IntN(32), uint32(r.IntN(nanos))/uint32(1+r.IntN(nanos)))
}

func (r anyValues) entry() []byte {
	b := msgpack.AppendArrayHeader(nil, 2)
	if r.IntN(4) == 0 {
		b = msgpack.AppendArrayHeader(b, 2)
		b = r.object(r.time(b), 2)
	} else {
		b = r.time(b)
	}
	return r.object(b, 4)
}

// TestReplay: what was written of any event is read as an event of which the same is written.
func TestReplay(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := anyValues{rand.New(rand.NewPCG(seed, 0))}
	for _, way := range replays {
		w, reader := mustEncoder(t, &way.write), mustReader(t, &way.read)
		promised := 0
		const events = 3000
		for range events {
			raw := r.entry()
			entries := forward.ReadEntries(raw)
			e, ok := entries.Next()
			if !ok {
				t.Fatalf("%x: %v", raw, entries.Err())
			}
			if replay(t, w, reader, r.text(), e) {
				promised++
			}
		}
		if promised < events/2 {
			t.Errorf("%+v: only %d lines of %d had a time and a tag that can come back", way.write, promised, events)
		}
	}
}

// TestReplayNot holds what is not promised, and what becomes of it: nothing is lost, but the line
// is another one.
func TestReplayNot(t *testing.T) {
	r := mustReader(t, &ReadOptions{Time: "time", Tag: "tag"})
	deepest := append(bytes.Repeat([]byte{0x81, 0xa1, 'k'}, msgpack.DefaultDepth-1), 0x80)
	for _, tt := range []struct {
		name  string
		tag   string
		entry forward.Entry
		want  string // of the line
	}{
		{
			"time 0", "t",
			forward.Entry{Record: record()},
			`{"time":"1970-01-01T00:00:01.000000000Z","tag":"t","time_":"1970-01-01T00:00:00.000000000Z"}`,
		},
		{
			"a tag that grows", strings.Repeat("\xff", forward.MaxTag),
			forward.Entry{Sec: testSec, Record: record()},
			`{"time":"2026-11-21T02:03:04.000000000Z","tag":"","tag_":"` + strings.Repeat("\ufffd", forward.MaxTag) +
				`"}`,
		},
		{
			"metadata as deep as can be", "t",
			forward.Entry{Sec: testSec, Meta: deepest, Record: record()},
			`{"time":"1970-01-01T00:00:01.000000000Z","tag":"","message":"{\"time\":`,
		},
	} {
		line := new(Encoder).AppendLine(nil, tt.tag, tt.entry)
		entry, e := r.AppendEntry(nil, line, time.Unix(1, 0))
		entries := forward.ReadEntries(entry)
		got, _ := entries.Next()
		if back := new(Encoder).AppendLine(nil, string(e.Tag), got); !strings.HasPrefix(string(back), tt.want) {
			t.Errorf("%s: %s comes back as %s", tt.name, line, back)
		}
	}
}

// FuzzReplay is TestReplay with the bytes of any entry.
func FuzzReplay(f *testing.F) {
	r := anyValues{rand.New(rand.NewPCG(1, 2))}
	for range 20 {
		f.Add(r.entry(), r.text(), uint8(r.IntN(len(replays))))
	}
	deepest := append(bytes.Repeat([]byte{0x81, 0xa1, 'k'}, msgpack.DefaultDepth-1), 0x80)
	f.Add(append([]byte{0x92, 0x05}, deepest...), "t", uint8(0))
	f.Add(append(append([]byte{0x92, 0x92, 0x05}, deepest...), 0x80), "t", uint8(0))
	f.Add([]byte{0x92, 0x00, 0x80}, strings.Repeat("\xff", forward.MaxTag), uint8(0))
	f.Add(append(binary.BigEndian.AppendUint64([]byte{0x92, 0xcb}, math.Float64bits(-1e-9)), 0x80), "", uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, tag string, way uint8) {
		if len(tag) > forward.MaxTag {
			return
		}
		entries := forward.ReadEntries(raw)
		e, ok := entries.Next()
		if !ok {
			return
		}
		x := &replays[int(way)%len(replays)]
		replay(t, mustEncoder(t, &x.write), mustReader(t, &x.read), tag, e)
	})
}
