// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// One test a rule of docs/forward.md. Those about the client, JSON, UDP and closing stand with
// client, jsonconn, heartbeat and server.

const (
	m1 = event + `{"m":"1"}`
	m2 = event + `{"m":"2"}`
)

// t1 and t2 are the events of the vectors.
var both = []string{"t " + m1, "t " + m2}

func TestRule01AnySplit(t *testing.T) {
	var stream []byte
	for _, part := range []string{
		hexForward, hexPacked, "c0", "93 a1 74 ce 55ece6f8 81 a1 6d a1 62", "93 a1 75 " + hexTime + " 80",
		"93 a1 74 " + hexTime + " c0",
		"94 a1 74 " + hexTime + " 81 a1 6d a1 62 81" + hexChunk, "92 a1 74 90", "92 a1 74 05",
		"93 a1 74 92 " + hexEntry1 + "92 a1 05 80 c0",
	} {
		stream = append(stream, unhex(part)...)
	}
	stream = append(stream, packedMessage("u", 700, "gzip")...)
	stream = append(stream, packedMessage("t", 1000, "")...)
	stream = append(stream, unhex("93 a1 74 "+hexTime)...)
	want := play(nil, stream)
	if len(want.events) < 1700 || len(want.acks) == 0 || len(want.peerErrors) < 3 {
		t.Fatalf("%d events, %d peerErrors", len(want.events), len(want.peerErrors))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		var pieces [][]byte
		for rest := stream; len(rest) > 0; {
			n := 1
			if i > 0 {
				n = 1 + rng.IntN(min(len(rest), 1<<rng.IntN(18)))
			}
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		same(t, play(nil, pieces...), want)
	}
}

// same compares what must not depend on how the stream was cut.
func same(t *testing.T, got, want *outcome) {
	t.Helper()
	if !slices.Equal(got.byTag(), want.byTag()) {
		t.Errorf("events\n%.2000q, want\n%.2000q", got.byTag(), want.byTag())
	}
	if !bytes.Equal(got.acks, want.acks) {
		t.Errorf("acks %x, want %x", got.acks, want.acks)
	}
	if got.kinds() != want.kinds() {
		t.Errorf("peerErrors %v, want %v", got.peerErrors, want.peerErrors)
	}
	g, w := got.stats, want.stats
	if g.Messages != w.Messages || g.Ignored != w.Ignored || g.Refused != w.Refused || g.Invalid != w.Invalid ||
		g.Skipped != w.Skipped {
		t.Errorf("stats %+v, want %+v", g, w)
	}
}

// entries makes n entries of about 140 bytes.
func entries(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, wire.CodeArray2)
		b = AppendEventTime(b, 1441588984, uint32(i))
		b = msgpack.AppendMapHeader(b, 4)
		b = msgpack.AppendString(b, "level")
		b = msgpack.AppendString(b, "INFO")
		b = msgpack.AppendString(b, "path")
		b = msgpack.AppendString(b, "/api/v1/orders/0123456789/items")
		b = msgpack.AppendString(b, "message")
		b = msgpack.AppendString(b, "order placed by a customer who likes logging a lot")
		b = msgpack.AppendString(b, "count")
		b = msgpack.AppendInt(b, int64(i))
	}
	return b
}

// packedMessage makes a PackedForward message.
func packedMessage(tag string, n int, compress string) []byte {
	c := Chunk{Tag: tag, Entries: entries(n), Events: n, ID: []byte("an id")}
	return wireOf(&c, compress)
}

// wireOf is a chunk as it travels.
func wireOf(c *Chunk, compress string) []byte {
	e, free, err := (&wire.Deflater{How: compress}).Deflate(c.Entries)
	if err != nil {
		panic(err)
	}
	defer free()
	b := append(wire.AppendHead(nil, c.Tag, len(e)), e...)
	return c.appendTail(b, compress)
}

func TestRule02Partial(t *testing.T) {
	whole := unhex(hexPacked)
	for n := 1; n < len(whole); n++ {
		o := play(nil, whole[:n])
		if len(o.events) > 0 || len(o.acks) > 0 || o.kinds() != "partial message: connection closed" ||
			o.stats.PeerErrors[PeerPartial] != 1 {
			t.Errorf("%d bytes: %q, acks %x, %s", n, o.events, o.acks, o.kinds())
		}
	}
}

func TestRule03Mode(t *testing.T) {
	rec := "81 a1 6d a1 62"
	bad := func(s string) string { return "93 a1 74 " + s + " 80" + "93 a1 74 01 " + rec }
	after := []string{`t 1.000000000 {"m":"b"}`}
	const refusedOne = "invalid message: message refused"
	run(t, []vector{
		{name: "fixint", in: "93 a1 74 01 " + rec, events: after},
		{name: "negative", in: "93 a1 74 ff " + rec, events: []string{`t -1.000000000 {"m":"b"}`}},
		{name: "float", in: "93 a1 74 cb 3ff8000000000000 " + rec, events: []string{`t 1.500000000 {"m":"b"}`}},
		{name: "float32", in: "93 a1 74 ca 3fc00000 " + rec, events: []string{`t 1.500000000 {"m":"b"}`}},
		{name: "ext", in: "93 a1 74 " + hexTime + rec, events: []string{"t " + event + `{"m":"b"}`}},
		{
			name: "metadata", in: "93 a1 74 92 " + hexTime + "81 a1 6b 01" + rec,
			events: []string{"t " + event + `{"k":1} {"m":"b"}`},
		},
		{name: "forward", in: hexForward, events: both, acks: hexAck},
		{name: "forward empty", in: "92 a1 74 90"},
		{name: "packed bin", in: hexPacked, events: both, acks: hexAck},
		{name: "packed str", in: "92 a1 74 b0 " + hexEntry1, events: both[:1]},
		{name: "packed empty", in: "92 a1 74 a0"},
		{name: "nil", in: bad("c0"), events: after, peerErrors: refusedOne},
		{name: "bool", in: bad("c3"), events: after, peerErrors: refusedOne},
		{name: "map", in: bad("81 a1 78 01"), events: after, peerErrors: refusedOne},
		{name: "no record", in: "92 a1 74 05" + "93 a1 74 01 " + rec, events: after, peerErrors: refusedOne},
		{name: "one element", in: "91 a1 74" + "93 a1 74 01 " + rec, events: after, peerErrors: refusedOne},
		{name: "no elements", in: "90" + "93 a1 74 01 " + rec, events: after, peerErrors: refusedOne},
		{
			name: "five elements", in: "95 a1 74 01 80 80 80" + "93 a1 74 01 " + rec, events: after,
			peerErrors: refusedOne,
		},
		{
			name: "tag is a number", in: "93 05 01 80" + "93 a1 74 01 " + rec, events: after,
			peerErrors: "bad tag: message refused",
		},
		{name: "tag is bin", in: "93 c4 01 74 01 " + rec, events: after},
	})
}

func TestRule04PackedAsStr(t *testing.T) {
	long := string(entries(3)[:0])
	for range 2000 {
		long += hexEntry1
	}
	many := slices.Repeat(both[:1], 2000)
	run(t, []vector{
		{name: "bin8", in: "92 a1 74 c4 10 " + hexEntry1, events: both[:1]},
		{name: "bin16", in: "92 a1 74 c5 0010 " + hexEntry1, events: both[:1]},
		{name: "bin32", in: "92 a1 74 c6 00000010 " + hexEntry1, events: both[:1]},
		{name: "fixstr", in: "92 a1 74 b0 " + hexEntry1, events: both[:1]},
		{name: "str8", in: "92 a1 74 d9 10 " + hexEntry1, events: both[:1]},
		{name: "str16", in: "92 a1 74 da 0010 " + hexEntry1, events: both[:1]},
		{name: "str32", in: "92 a1 74 db 00000010 " + hexEntry1, events: both[:1]},
		{name: "long", in: "92 a1 74 db 00007d00 " + long, events: many},
	})
	z := gzipOf(unhex(hexEntry1 + hexEntry2))
	in := append(unhex(fmt.Sprintf("93 a1 74 db %08x", len(z))), z...)
	in = append(in, unhex("81 aa 636f6d70726573736564 a4 677a6970")...)
	if o := play(nil, in); !slices.Equal(o.events, both) {
		t.Errorf("compressed as str32: %q, %v", o.events, o.peerErrors)
	}
}

func gzipOf(members ...[]byte) []byte {
	var out bytes.Buffer
	for _, m := range members {
		z := gzip.NewWriter(&out)
		if _, err := z.Write(m); err != nil {
			panic(err)
		}
		if err := z.Close(); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

func zstdOf(frames ...[]byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	var out []byte
	for _, f := range frames {
		out = z.EncodeAll(f, out)
	}
	return out
}

func TestRule05NonMinimal(t *testing.T) {
	b := `{"m":"b"}`
	rec := "81 a1 6d a1 62"
	at5 := []string{"t 5.000000000 " + b}
	run(t, []vector{
		{name: "entry array32", in: "92 a1 74 91 dd 00000002 " + hexTime + rec, events: []string{"t " + event + b}},
		{name: "entry array16", in: "92 a1 74 91 dc 0002 " + hexTime + rec, events: []string{"t " + event + b}},
		{
			name: "packed entry array32", in: "92 a1 74 c4 14 dd 00000002 " + hexTime + rec,
			events: []string{"t " + event + b},
		},
		{name: "tag str8", in: "93 d9 01 74 05 " + rec, events: at5},
		{name: "tag str16", in: "93 da 0001 74 05 " + rec, events: at5},
		{name: "tag str32", in: "93 db 00000001 74 05 " + rec, events: at5},
		{name: "uint8", in: "93 a1 74 cc 05 " + rec, events: at5},
		{name: "uint16", in: "93 a1 74 cd 0005 " + rec, events: at5},
		{name: "uint32", in: "93 a1 74 ce 00000005 " + rec, events: at5},
		{name: "uint64", in: "93 a1 74 cf 0000000000000005 " + rec, events: at5},
		{name: "int8", in: "93 a1 74 d0 05 " + rec, events: at5},
		{name: "int64", in: "93 a1 74 d3 0000000000000005 " + rec, events: at5},
		{name: "float64", in: "93 a1 74 cb 4014000000000000 " + rec, events: at5},
		{name: "outer array16", in: "dc 0003 a1 74 05 " + rec, events: at5},
		{name: "outer array32", in: "dd 00000003 a1 74 05 " + rec, events: at5},
		{name: "entries array32", in: "92 a1 74 dd 00000001 " + hexEntry1, events: both[:1]},
		{name: "record map32", in: "93 a1 74 05 df 00000001 a1 6d a1 62", events: at5},
		{name: "option map16", in: "94 a1 74 05 " + rec + "de 0001" + hexChunk, events: at5, acks: hexAck},
	})
}

func TestRule06NoArray(t *testing.T) {
	run(t, []vector{{
		name:   "ignored",
		in:     "c0 c0 05 a3 616263 81 a1 78 01 cb 0000000000000000 c4 03 010203" + hexForward + "c0",
		events: both, acks: hexAck,
	}})
	o := play(nil, unhex("c0 05 c0"))
	if o.stats.Ignored != 3 || o.kinds() != "" {
		t.Errorf("%+v %s", o.stats, o.kinds())
	}
	heartbeats := play(nil, bytes.Repeat([]byte{wire.CodeNil}, 5000))
	if heartbeats.kinds() != "" {
		t.Errorf("heartbeats: %s", heartbeats.kinds())
	}
}

func TestRule07Option(t *testing.T) {
	msg := "94 a1 74 05 81 a1 6d a1 62 "
	want := []string{`t 5.000000000 {"m":"b"}`}
	run(t, []vector{
		{name: "absent", in: "93 a1 74 05 81 a1 6d a1 62 ", events: want},
		{name: "nil", in: msg + "c0", events: want},
		{name: "empty", in: msg + "80", events: want},
		{name: "unknown keys", in: msg + "83 a1 78 92 01 02 05 06 c4 01 79 81 a1 7a c0", events: want},
		{name: "unknown keys and chunk", in: msg + "83 a1 78 92 01 02 05 06" + hexChunk, events: want, acks: hexAck},
		{name: "no map", in: msg + "05", events: want},
		{name: "forward nil", in: "93 a1 74 91 " + hexEntry1 + "c0", events: both[:1]},
		{name: "packed nil", in: "93 a1 74 c4 10 " + hexEntry1 + "c0", events: both[:1]},
		{name: "chunk is nil", in: msg + "81 a5 6368756e6b c0", events: want},
		{name: "chunk is a number", in: msg + "81 a5 6368756e6b 05", events: want},
	})
}

func TestRule08Message(t *testing.T) {
	want := []string{`t 1441588984.000000000 {"m":"b"}`}
	run(t, []vector{
		{name: "plain", in: "93 a1 74 ce 55ece6f8 81 a1 6d a1 62", events: want},
		{name: "option", in: "94 a1 74 ce 55ece6f8 81 a1 6d a1 62 81" + hexChunk, events: want, acks: hexAck},
	})
}

func TestRule09FixExt8(t *testing.T) {
	run(t, []vector{{
		name: "", in: "93 a1 74 d7 00 55ece6f8 075bcd15 81 a1 6d a1 62",
		events: []string{"t " + event + `{"m":"b"}`},
	}})
}

func TestRule10Ext8(t *testing.T) {
	rec := "81 a1 6d a1 62"
	run(t, []vector{
		{name: "ext8", in: "93 a1 74 c7 08 00 55ece6f8 075bcd15 " + rec, events: []string{"t " + event + `{"m":"b"}`}},
		{
			name: "in an entry", in: "92 a1 74 91 92 c7 08 00 55ece6f8 075bcd15 " + rec,
			events: []string{"t " + event + `{"m":"b"}`},
		},
		{
			name: "2106", in: "93 a1 74 d7 00 ffffffff 3b9ac9ff " + rec,
			events: []string{`t 4294967295.999999999 {"m":"b"}`},
		},
		{name: "nanoseconds", in: "93 a1 74 d7 00 55ece6f8 3b9aca00 " + rec, peerErrors: "invalid entries: kept"},
		{
			name: "nanoseconds packed", in: "92 a1 74 c4 22 92 d7 00 55ece6f8 3b9aca00 81 a1 6d a1 31" + hexEntry2 +
				"c0c0", events: both[1:],
			peerErrors: "invalid entries: kept",
		},
		{name: "another ext", in: "93 a1 74 d7 01 55ece6f8 075bcd15 " + rec, peerErrors: "invalid entries: kept"},
		{name: "another length", in: "93 a1 74 d6 00 55ece6f8 " + rec, peerErrors: "invalid entries: kept"},
		{
			name: "ext in the record", in: "93 a1 74 05 82 a1 61 d4 05 ff a1 62 " + hexTime,
			events: []string{`t 5.000000000 {"a":"ext:5:/w==","b":"2015-09-07T01:23:04.123456789Z"}`},
		},
	})
}

func TestRule11TimeZero(t *testing.T) {
	b := `{"m":"b"}`
	rec := "81 a1 6d a1 62"
	now := []string{"t 946684800.000000000 " + b}
	run := func(name, in string, events []string, acks string) {
		for _, pieces := range [][][]byte{{unhex(in)}, bytewise(unhex(in))} {
			w := vector{name: name, events: events, acks: acks}
			w.check(t, play(nil, pieces...))
		}
	}
	run("message", "93 a1 74 00 "+rec, now, "")
	run("message with ack", "94 a1 74 00 "+rec+"81"+hexChunk, now, hexAck)
	run("EventTime", "93 a1 74 d7 00 00000000 00000000 "+rec, now, "")
	run("float", "93 a1 74 cb 0000000000000000 "+rec, now, "")
	run("metadata", "93 a1 74 92 00 81 a1 6b 01"+rec, []string{`t 946684800.000000000 {"k":1} ` + b}, "")
	run("several", "93 a1 74 00 "+rec+"93 a1 74 05 "+rec+"93 a1 74 00"+rec,
		[]string{now[0], "t 5.000000000 " + b, now[0]}, "")
	run("forward", "92 a1 74 92 92 00 "+rec+hexEntry1, []string{now[0], both[0]}, "")
	run("packed", "92 a1 74 c4 30 "+hexEntry1+" 92 d7 00 00000000 00000000 "+rec+hexEntry2,
		[]string{both[0], now[0], both[1]}, "")
	run("packed metadata", "92 a1 74 c4 09 92 92 00 80 "+rec, []string{`t 946684800.000000000 {} ` + b}, "")
}

func TestRule12NilRecord(t *testing.T) {
	run(t, []vector{
		{name: "message", in: "93 a1 74 05 c0"},
		{name: "message with ack", in: "94 a1 74 05 c0 81" + hexChunk, acks: hexAck},
		{name: "forward", in: "92 a1 74 92 92 05 c0 " + hexEntry1, events: both[:1]},
		{name: "packed", in: "92 a1 74 c4 13 " + hexEntry1 + "92 05 c0", events: both[:1]},
		{name: "a nil entry", in: "92 a1 74 92 c0 " + hexEntry1, events: both[:1]},
		{name: "only nil", in: "93 a1 74 91 92 05 c0 81" + hexChunk, acks: hexAck},
	})
	if o := play(nil, unhex("93 a1 74 05 c0 92 a1 74 92 92 05 c0 c0")); o.stats.Skipped != 3 || o.stats.Invalid != 0 ||
		o.stats.Chunks != 0 {
		t.Errorf("%+v", o.stats)
	}
}

func TestRule13Metadata(t *testing.T) {
	entry := "92 92 d7 00 55ece6f8 075bcd15 80 81 a1 6d a1 31"
	full := "92 92 d7 00 55ece6f8 075bcd15 81 a1 6b a1 76 81 a1 6d a1 31"
	want := []string{"t " + event + `{} {"m":"1"}`}
	wantFull := []string{"t " + event + `{"k":"v"} {"m":"1"}`}
	run(t, []vector{
		{name: "forward", in: "92 a1 74 91 " + entry, events: want},
		{name: "packed", in: "92 a1 74 c4 12 " + entry, events: want},
		{
			name: "packed, both shapes", in: "92 a1 74 c4 38 " + entry + full + hexEntry1,
			events: []string{want[0], wantFull[0], both[0]},
		},
		{name: "message", in: "93 a1 74 92 d7 00 55ece6f8 075bcd15 80 81 a1 6d a1 31", events: want},
		{name: "message with ack", in: "94 a1 74 92 d7 00 55ece6f8 075bcd15 81 a1 6b a1 76 81 a1 6d a1 31 81" +
			hexChunk, events: wantFull, acks: hexAck},
		{
			name: "metadata is no map", in: "92 a1 74 92 92 92 05 06 80 " + hexEntry1, events: both[:1],
			peerErrors: "invalid entries: kept",
		},
		{
			name: "three of them", in: "92 a1 74 92 92 93 05 80 80 80 " + hexEntry1, events: both[:1],
			peerErrors: "invalid entries: kept",
		},
	})
}

func TestRule14Signal(t *testing.T) {
	packed := func(signal string) string {
		return "93 a1 74 c4 10 " + hexEntry1 + "82 ad 666c75656e745f7369676e616c " + signal + hexChunk
	}
	run(t, []vector{
		{name: "logs", in: packed("00"), events: both[:1], acks: hexAck},
		{name: "nil", in: packed("c0"), events: both[:1], acks: hexAck},
		{
			name: "metrics", in: packed("01") + hexPacked, events: both, acks: hexAck,
			peerErrors: "signal: message refused",
		},
		{name: "traces", in: packed("02"), peerErrors: "signal: message refused"},
		{name: "text", in: packed("a1 31"), peerErrors: "signal: message refused"},
	})
}

func TestRule15Empty(t *testing.T) {
	run(t, []vector{
		{name: "forward", in: "93 a1 74 90 81" + hexChunk, acks: hexAck},
		{name: "packed", in: "93 a1 74 c4 00 81" + hexChunk, acks: hexAck},
		{name: "gzip", in: "93 a1 74 c4 00 82 aa 636f6d70726573736564 a4 677a6970" + hexChunk, acks: hexAck},
	})
}

func TestRule16Size(t *testing.T) {
	for _, size := range []string{"00", "cf ffffffffffffffff", "d0 80", "a1 78", "c0"} {
		run(t, []vector{{name: size, in: "93 a1 74 c4 20 " + hexEntry1 + hexEntry2 + "82 a4 73697a65 " +
			size + hexChunk, events: both, acks: hexAck}})
	}
}

// compressed makes a packed message with a compressed payload and an id.
func compressed(how string, payload []byte) string {
	b := wire.AppendHead(nil, "t", len(payload))
	b = append(b, payload...)
	b = append(b, 0x82)
	b = msgpack.AppendString(b, "compressed")
	b = msgpack.AppendString(b, how)
	return fmt.Sprintf("%x", b) + hexChunk
}

func TestRule17Compressed(t *testing.T) {
	e1, e2 := unhex(hexEntry1), unhex(hexEntry2)
	two := slices.Concat(e1, e2)
	run(t, []vector{
		{name: "text", in: compressed("text", two), events: both, acks: hexAck},
		{name: "gzip", in: compressed("gzip", gzipOf(two)), events: both, acks: hexAck},
		{name: "gzip, a member each", in: compressed("gzip", gzipOf(e1, e2)), events: both, acks: hexAck},
		{
			name: "gzip, members cut within an entry", in: compressed("gzip", gzipOf(two[:5], two[5:20], two[20:])),
			events: both, acks: hexAck,
		},
		{name: "zstd", in: compressed("zstd", zstdOf(two)), events: both, acks: hexAck},
		{name: "zstd, a frame each", in: compressed("zstd", zstdOf(e1, e2)), events: both, acks: hexAck},
		{
			name: "unknown", in: compressed("lzma", two) + hexPacked, events: both, acks: hexAck,
			peerErrors: "unknown compression: message refused",
		},
		{
			name: "no string", in: "93 a1 74 c4 10" + hexEntry1 + "82 aa 636f6d70726573736564 05" + hexChunk,
			peerErrors: "unknown compression: message refused",
		},
		{
			name: "nil", in: "93 a1 74 c4 10" + hexEntry1 + "82 aa 636f6d70726573736564 c0" + hexChunk,
			events: both[:1],
			acks:   hexAck,
		},
		{
			name: "twice in a row", in: compressed("gzip", gzipOf(two)) + compressed("zstd", zstdOf(two)),
			events: slices.Concat(both, both), acks: hexAck + hexAck,
		},
	})
}

func TestRule18Corrupt(t *testing.T) {
	two := unhex(hexEntry1 + hexEntry2)
	z, f := gzipOf(two), zstdOf(two)
	flipped := slices.Clone(z)
	flipped[len(flipped)-6] ^= 1 // checksum
	const corrupt = "corrupt: message refused"
	bad := func(name, in, peerErrors string) vector {
		return vector{name: name, in: in + hexPacked, events: both, acks: hexAck, peerErrors: peerErrors}
	}
	run(t, []vector{
		bad("checksum", compressed("gzip", flipped), corrupt),
		bad("truncated", compressed("gzip", z[:len(z)-9]), corrupt),
		bad("truncated trailer", compressed("gzip", z[:len(z)-1]), corrupt),
		bad("no gzip", compressed("gzip", two), corrupt),
		bad("no gzip at all", compressed("gzip", []byte("broken string")), corrupt),
		bad("something behind", compressed("gzip", append(slices.Clone(z), 1, 2, 3)), corrupt),
		bad("second member truncated", compressed("gzip", append(slices.Clone(z), z[:12]...)), corrupt),
		bad("zstd truncated", compressed("zstd", f[:len(f)-3]), corrupt),
		bad("no zstd", compressed("zstd", two), corrupt),
		bad("breaks off", "93 a1 74 c4 1f "+hexEntry1+hexEntry2[:len(hexEntry2)-3]+"81"+hexChunk,
			"invalid chunk: message refused"),
		bad("breaks off, compressed", compressed("gzip", gzipOf(two[:20])), "invalid chunk: message refused"),
		bad("no MessagePack", "93 a1 74 c4 02 92 c1 81"+hexChunk, "invalid chunk: message refused"),
		bad("nested", "93 a1 74 c5 0100 "+strings.Repeat("91", 256)+"81"+hexChunk, "too deep: message refused"),
		bad("huge claim", "93 a1 74 c4 05 dd ffffffff 81"+hexChunk, "too long: message refused"),
	})
	// Text is thirteen small integers, compressed data most often a mixture: not a single array is
	// no stream of entries with some invalid ones, but something else.
	run(t, []vector{
		bad("broken string", "93 a1 74 ad "+fmt.Sprintf("%x", "broken string")+"81"+hexChunk,
			"invalid chunk: message refused"),
		bad("gzip without saying so", fmt.Sprintf("93 a1 74 c4 %02x %x 81", len(z), z)+hexChunk,
			"invalid chunk: message refused"),
	})
}

func TestRule19Bomb(t *testing.T) {
	small := func(s *Server) { s.MaxDecompressed = 5 << 10 }
	fits := bytes.Repeat(unhex(hexEntry1), 320) // 5120 bytes
	over := bytes.Repeat(unhex(hexEntry1), 321)
	many := slices.Repeat(both[:1], 320)
	const bomb = "bomb: message refused"
	run(t, []vector{
		{name: "gzip fits", in: compressed("gzip", gzipOf(fits)), events: many, acks: hexAck, set: small},
		{
			name: "gzip bomb", in: compressed("gzip", gzipOf(over)) + hexPacked, events: both, acks: hexAck,
			peerErrors: bomb, set: small,
		},
		{name: "members bomb", in: compressed("gzip", gzipOf(fits, fits)), peerErrors: bomb, set: small},
		{name: "zstd fits", in: compressed("zstd", zstdOf(fits)), events: many, acks: hexAck, set: small},
		{name: "zstd bomb", in: compressed("zstd", zstdOf(over)), peerErrors: bomb, set: small},
	})
	// Three hundred megabytes of zeros are seen to be no entries long before they are all there.
	zeros := make([]byte, 4<<20)
	for how, z := range map[string][]byte{"gzip": gzipOf(zeros), "zstd": zstdOf(zeros)} {
		o := play(nil, unhex(compressed(how, bytes.Repeat(z, 75))))
		if o.kinds() != "invalid chunk: message refused" || len(o.acks) > 0 || o.stats.Memory != 0 {
			t.Errorf("%s: %s, %+v", how, o.kinds(), o.stats)
		}
	}
}

func TestRule20Claims(t *testing.T) {
	claims := []vector{
		{name: "array32 of entries", in: "92 a1 74 dd ffffffff", peerErrors: "too long: connection closed"},
		{name: "str32 of entries", in: "92 a1 74 db ffffffff", peerErrors: "too long: connection closed"},
		{name: "bin32 of entries", in: "92 a1 74 c6 ffffffff", peerErrors: "too long: connection closed"},
		{name: "bin32 of entries, 2 GiB", in: "92 a1 74 c6 7fffffff", peerErrors: "too large: connection closed"},
		{name: "tag", in: "92 db ffffffff", peerErrors: "too long: connection closed"},
		{name: "record", in: "93 a1 74 05 df ffffffff", peerErrors: "too long: connection closed"},
		{name: "value", in: "93 a1 74 05 81 a1 6d db ffffffff", peerErrors: "too long: connection closed"},
		{
			name: "value of an entry", in: "92 a1 74 91 92 05 81 a1 6d c6 ffffffff",
			peerErrors: "too long: connection closed",
		},
		{name: "outer array", in: "dd ffffffff", peerErrors: "too long: connection closed"},
		{name: "nobody's map", in: "df ffffffff", peerErrors: "too long: connection closed"},
		{name: "nested claims", in: strings.Repeat("dc ffff ", 24000), peerErrors: "too deep: connection closed"},
		{name: "nested", in: strings.Repeat("91", 100000), peerErrors: "too deep: connection closed"},
		{
			name: "nested record", in: "93 a1 74 05 " + strings.Repeat("81 a1 78 ", 50000),
			peerErrors: "too deep: connection closed",
		},
		{
			name: "nested entries", in: "92 a1 74 " + strings.Repeat("91", 100000),
			peerErrors: "too deep: connection closed",
		},
	}
	for i := range claims {
		claims[i].set = func(s *Server) { s.Memory = 1 << 20 }
	}
	run(t, claims)
	// After a good chunk, that one is acked all the same.
	run(t, []vector{{
		name: "after a chunk", in: hexPacked + "92 a1 74 dd ffffffff", events: both, acks: hexAck,
		peerErrors: "too long: connection closed",
	}})
}

func TestRule20Garbage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		noise := make([]byte, 1<<18)
		for i := range noise {
			noise[i] = byte(rng.Uint32())
		}
		o := play(func(s *Server) { s.Memory = 1 << 20 }, noise)
		if n := len(o.peerErrors); n == 0 || o.peerErrors[n-1].Action != ActionClose {
			t.Errorf("noise: %s", o.kinds())
		}
		for _, w := range []string{
			"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
			"<34>Oct 11 22:14:15 host su: failed\n",
		} {
			o := play(nil, []byte(strings.Repeat(w, 100)))
			if o.kinds() != "other protocol: connection closed" {
				t.Errorf("%q: %s", w, o.kinds())
			}
		}
	}
}

func TestRule21Keys(t *testing.T) {
	run(t, []vector{
		{name: "key as bin", in: "93 a1 74 05 81 c4 01 6d a1 62", events: []string{`t 5.000000000 {"m":"b"}`}},
		{name: "no UTF-8", in: "93 a1 74 05 81 a1 ff a1 fe", events: []string{"t 5.000000000 {\"\ufffd\":\"\ufffd\"}"}},
		{
			name: "order and repeats", in: "93 a1 74 05 83 a1 7a 01 a1 61 02 a1 7a 03",
			events: []string{`t 5.000000000 {"z":1,"a":2,"z":3}`},
		},
	})
}

func TestRule22Values(t *testing.T) {
	run(t, []vector{
		{
			name: "numbers", in: "93 a1 74 05 84 a1 61 cf ffffffffffffffff a1 62 cb 7ff8000000000001 a1 63 cb fff0000000000000 a1 64 cb 8000000000000000",
			events: []string{`t 5.000000000 {"a":18446744073709551615,"b":null,"c":null,"d":-0}`},
		},
		{
			name: "keys", in: "93 a1 74 05 82 05 81 c3 01 92 01 02 c0",
			events: []string{`t 5.000000000 {"5":{"true":1},"[1,2]":null}`},
		},
		{name: "bin", in: "93 a1 74 05 81 a1 61 c4 02 6869", events: []string{`t 5.000000000 {"a":"hi"}`}},
		{
			name: "ext", in: "93 a1 74 05 81 a1 61 c7 03 80 010203",
			events: []string{`t 5.000000000 {"a":"ext:-128:AQID"}`},
		},
	})
}

func TestRule23Invalid(t *testing.T) {
	in := "93 a1 74 96 " + hexEntry1 + "92 a1 31 80 92 05 a1 78 05 91 05" + hexEntry2 + "81" + hexChunk
	packed := "93 a1 74 c4 2b " + hexEntry1 + "92 a1 31 80 92 05 a1 78 05 91 05" + hexEntry2 + "81" + hexChunk
	refuse := func(s *Server) { s.RefuseInvalid = true }
	run(t, []vector{
		{name: "forward", in: in, events: both, acks: hexAck, peerErrors: "invalid entries: kept"},
		{name: "packed", in: packed, events: both, acks: hexAck, peerErrors: "invalid entries: kept"},
		{
			name: "gzip", in: compressed("gzip", gzipOf(unhex(packed)[5:5+43])), events: both, acks: hexAck,
			peerErrors: "invalid entries: kept",
		},
		{
			name: "message", in: "93 a1 74 05 91 01" + hexPacked, events: both, acks: hexAck,
			peerErrors: "invalid entries: kept",
		},
		{
			name: "forward refused", in: in + hexPacked, events: both, acks: hexAck,
			peerErrors: "invalid entries: message refused", set: refuse,
		},
		{
			name: "packed refused", in: packed + hexPacked, events: both, acks: hexAck,
			peerErrors: "invalid entries: message refused", set: refuse,
		},
		{
			name: "message refused", in: "94 a1 74 05 91 01 81" + hexChunk + hexPacked, events: both, acks: hexAck,
			peerErrors: "invalid entries: message refused", set: refuse,
		},
	})
	o := play(nil, unhex(in))
	if o.stats.Invalid != 4 || len(o.peerErrors) != 1 || o.peerErrors[0].Entries != 4 ||
		o.chunks[0] != `t "p8n9gmxTQVC8/nh2wlKKeQ==" events 2 invalid 4 skipped 0` {
		t.Errorf("%+v %v %q", o.stats, o.peerErrors, o.chunks)
	}
}

func TestRule24NoAck(t *testing.T) {
	run(t, []vector{
		{name: "no option", in: "92 a1 74 91 " + hexEntry1, events: both[:1]},
		{name: "other options", in: "93 a1 74 91 " + hexEntry1 + "81 a4 73697a65 01", events: both[:1]},
		{
			name: "chunk", in: hexForward, events: both,
			acks: "81 a3 61 63 6b b8 70 38 6e 39 67 6d 78 54 51 56 43 38 2f 6e 68 32 77 6c 4b 4b 65 51 3d 3d",
		},
	})
}

func TestRule25Echo(t *testing.T) {
	msg := "94 a1 74 05 81 a1 6d a1 62 81 a5 6368756e6b "
	want := []string{`t 5.000000000 {"m":"b"}`}
	ack := "81 a3 61636b "
	run(t, []vector{
		{
			name: "newline", in: msg + "b9 70386e39676d7854515643382f6e6832776c4b4b65513d3d0a", events: want,
			acks: ack + "b9 70386e39676d7854515643382f6e6832776c4b4b65513d3d0a",
		},
		{name: "bin", in: msg + "c4 03 00ff0a", events: want, acks: ack + "c4 03 00ff0a"},
		{name: "empty", in: msg + "a0", events: want, acks: ack + "a0"},
		{name: "empty bin", in: msg + "c4 00", events: want, acks: ack + "c4 00"},
		{name: "long form", in: msg + "da 0001 61", events: want, acks: ack + "a1 61"},
		{
			name: "long", in: msg + "da 0400 " + strings.Repeat("61", 1024), events: want,
			acks: ack + "da 0400 " + strings.Repeat("61", 1024),
		},
		{
			name: "64 KiB", in: msg + "db 00010000 " + strings.Repeat("61", 1<<16), events: want,
			acks: ack + "db 00010000 " + strings.Repeat("61", 1<<16),
		},
		{
			name: "more", in: msg + "db 00010001 " + strings.Repeat("61", 1<<16+1) + "93 a1 74 05 81 a1 6d a1 62",
			events: want, peerErrors: "bad id: message refused",
		},
	})
}

func TestRule26Order(t *testing.T) {
	var in, acks string
	var want []string
	for i := range 50 {
		switch id := fmt.Sprintf("81 a5 6368756e6b a2 %04x", i); i % 5 {
		case 0:
			acks += fmt.Sprintf("81 a3 61636b a2 %04x", i)
			in += "93 a1 74 90" + id // nothing to store
			continue
		case 1:
			in += fmt.Sprintf("93 a1 74 05 81 a1 6e cd %04x", i) // gathered
		default:
			acks += fmt.Sprintf("81 a3 61636b a2 %04x", i)
			in += fmt.Sprintf("94 a1 74 05 81 a1 6e cd %04x ", i) + id
		}
		want = append(want, fmt.Sprintf(`t 5.000000000 {"n":%d}`, i))
	}
	run(t, []vector{{name: "", in: in, events: want, acks: acks}})
}

func TestRule27Unstored(t *testing.T) {
	errFull := errors.New("no room")
	one := "94 a1 74 05 81 a1 6d a1 62 81 a5 6368756e6b a1 61" // three of them arrive in one read
	two := "94 a1 74 05 81 a1 6d a1 62 81 a5 6368756e6b a1 62"
	for _, single := range []bool{false, true} {
		o := play(func(s *Server) {
			g := s.Handler.(grouped)
			g.fail = func(c *Chunk) error {
				if string(c.ID) == "b" {
					return errFull
				}
				return nil
			}
			if single {
				s.Handler = g.outcome
			}
		}, unhex(one+two+one))
		want := "" // nothing of a group is acked
		if single {
			want = "81 a3 61636b a1 61"
		}
		if o.kinds() != "unstored: connection closed" || !errors.Is(o.peerErrors[0].Err, errFull) ||
			!bytes.Equal(o.acks, unhex(want)) {
			t.Errorf("single %v: acks %x, %v", single, o.acks, o.peerErrors)
		}
	}
}

func TestRule30TooLarge(t *testing.T) {
	small := func(s *Server) { s.MaxChunk = 1 << 20 }
	body := strings.Repeat(hexEntry1, 1<<17) // 2 MiB
	const large = "too large: connection closed"
	for _, w := range []vector{
		{name: "packed", in: hexPacked + "93 a1 74 c6 00200000 " + body + "81" + hexChunk},
		{name: "forward", in: hexPacked + "93 a1 74 dd 00020000 " + body + "81" + hexChunk},
		{name: "message", in: hexPacked + "93 a1 74 05 81 a1 61 da 0001 61" + strings.Repeat("00", 10)},
	} {
		w.events, w.acks, w.peerErrors = both, hexAck, large
		if w.name == "message" { // the record has 2 MiB
			v := strings.Repeat("a1 78 da 7fff"+strings.Repeat("61", 0x7fff), 64)
			w.in = hexPacked + "94 a1 74 05 de 0040 " + v + "81" + hexChunk
		}
		in := unhex(w.in)
		w.check(t, play(small, in))
		var pieces [][]byte
		for rest := in; len(rest) > 0; rest = rest[min(1000, len(rest)):] {
			pieces = append(pieces, rest[:min(1000, len(rest))])
		}
		w.check(t, play(small, pieces...))
	}
	// The limit itself fits.
	c := Chunk{Tag: "t", Entries: bytes.Repeat(unhex(hexEntry1), 1<<16), Events: 1 << 16, ID: []byte("x")}
	if o := play(small, wireOf(&c, "")); len(o.events) != 1<<16 || o.kinds() != "" {
		t.Errorf("a chunk of 1 MiB: %d events, %s", len(o.events), o.kinds())
	}
}

func TestTags(t *testing.T) {
	tag := func(s string) string {
		return fmt.Sprintf("93 %x 05 81 a1 6d a1 62", msgpack.AppendString(nil, s))
	}
	b := ` 5.000000000 {"m":"b"}`
	long := strings.Repeat("x", MaxTag)
	run(t, []vector{
		{name: "empty", in: tag(""), events: []string{b}},
		{
			name: "up", in: tag("../../etc/passwd"), events: []string{"../../etc/passwd" + b},
			peerErrors: "bad tag: kept",
		},
		{name: "NUL", in: tag("a\x00b"), events: []string{"a\x00b" + b}, peerErrors: "bad tag: kept"},
		{name: "longest", in: tag(long), events: []string{long + b}},
		{
			name: "longer", in: tag(long+"x") + tag("t"), events: []string{"t" + b},
			peerErrors: "bad tag: message refused",
		},
		{
			name: "64 KiB", in: tag(strings.Repeat("x", 64<<10)) + tag("t"), events: []string{"t" + b},
			peerErrors: "bad tag: message refused",
		},
	})
}
