// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Rules 1 to 16: framing and modes.

var (
	both = []string{m1, m2}
	one  = both[:1]
)

func rule01(tr *trial) {
	const few = 30 // they fit into small limits
	var entries bytes.Buffer
	short := 0
	for i := range 2000 {
		if i == few {
			short = entries.Len()
		}
		entries.Write(unhex(fmt.Sprintf("92 d7 00 55ece6f8 %08x 82 a1 6e cd %04x a1 70 %s", i, i,
			str(strings.Repeat("p", 100)))))
	}
	in := "93 $t 92 $e1 $e2 81 $chunk c0 93 $t ce 55ece6f8 $rec 93 $t $time c0 94 $t $time $rec 81 " + keyChunk +
		"$2 92 $t 90 92 $t c0" +
		packed(entries.Bytes(), keyChunk, "$3") + "92 $t 93 $e1 92 a1 05 80 c0" +
		packed(gzipped(entries.Bytes()[:short]), str("compressed"), str("gzip"), keyChunk, "$4")
	events := slices.Concat(both, []string{"1441588984.000000000 " + `{"m":"b"}`, mb})
	big := make([]string, 2000)
	for i := range big {
		big[i] = fmt.Sprintf(`1441588984.%09d {"n":%d,"p":"%s"}`, i, i, strings.Repeat("p", 100))
	}
	w := wire{
		in: in, acks: "$ack $ack2 " + ackOf + "$3" + ackOf + "$4",
		events: slices.Concat(events, big, one, big[:few]),
	}
	cut := func(name string, pieces func([]byte) [][]byte) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "plain")
			n, c := newNaming(), s.dial(p)
			c.send(pieces(n.bytes(w.in))...)
			w.check(p, s, c, nil, n)
		})
	}
	cut("several messages a write", func(b []byte) [][]byte { return [][]byte{b} })
	cut("one byte a write", func(b []byte) [][]byte {
		return append(bytewise(b[:5000]), append([][]byte{b[5000 : len(b)-5000]}, bytewise(b[len(b)-5000:])...)...)
	})
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 10 {
		cut(fmt.Sprintf("random pieces %d", i), func(b []byte) (pieces [][]byte) {
			for len(b) > 0 {
				n := 1 + rng.IntN(min(len(b), 1<<(4+rng.IntN(14))))
				pieces = append(pieces, b[:n])
				b = b[n:]
			}
			return pieces
		})
	}
}

func rule02(tr *trial) {
	const message = "93 $t c4 20 $e1 $e2 82 a4 73697a65 02 $chunk"
	whole := len(newNaming().bytes(message))
	for n := 1; n < whole; n += 3 {
		tr.run(fmt.Sprintf("%d bytes of %d", n, whole), func(p *probe) {
			s := tr.server(p, "plain")
			names, c := newNaming(), s.dial(p)
			c.send(names.bytes(message)[:n])
			w := wire{hang: true}
			w.check(p, s, c, nil, names)
		})
	}
	tr.wires(wire{
		name: "after a whole one", in: "93 $t 91 $e1 81 $chunk 93 $t 92 $e2", acks: "$ack", events: one,
		hang: true,
	})
}

func rule03(tr *trial) {
	const after = "93 $t 01 $rec"
	b := []string{`1.000000000 {"m":"b"}`}
	bad := func(s string) string { return "93 $t " + s + " 80" + after }
	tr.wires(
		wire{name: "int", in: "93 $t 01 $rec", events: b},
		wire{name: "negative int", in: "93 $t ff $rec", events: []string{`-1.000000000 {"m":"b"}`}},
		wire{name: "float64", in: "93 $t cb 3ff8000000000000 $rec", events: []string{`1.500000000 {"m":"b"}`}},
		wire{name: "float32", in: "93 $t ca 3fc00000 $rec", events: []string{`1.500000000 {"m":"b"}`}},
		wire{name: "ext", in: "93 $t $time $rec", events: []string{mb}},
		wire{name: "metadata", in: "93 $t 92 $time 81 a1 6b 01 $rec", events: []string{at + `{"k":1} {"m":"b"}`}},
		wire{name: "an array of entries", in: "93 $t 92 $e1 $e2 81 $chunk", events: both, acks: "$ack"},
		wire{name: "no entries", in: "92 $t 90"},
		wire{name: "bin", in: packed(unhex(vector1+vector2), keyChunk, "$1"), events: both, acks: "$ack"},
		wire{name: "str", in: "92 $t b0 $e1", events: one},
		wire{name: "an empty str", in: "92 $t a0"},
		wire{name: "nil", in: bad("c0"), events: b},
		wire{name: "bool", in: bad("c3"), events: b},
		wire{name: "a map", in: bad("81 a1 78 01"), events: b},
		wire{name: "a time without a record", in: "92 $t 05" + after, events: b},
		wire{name: "one element", in: "91 $t" + after, events: b},
		wire{name: "no elements", in: "90" + after, events: b},
		wire{name: "five elements", in: "95 $t 01 80 80 80" + after, events: b},
		wire{name: "a number for a tag", in: "93 05 01 80" + after, events: b},
		wire{name: "a tag as bin", in: "93 c4 06 $tag 01 $rec", events: b},
	)
}

func rule04(tr *trial) {
	long := strings.Repeat(vector1, 2000)
	many := slices.Repeat(one, 2000)
	var list []wire
	for _, form := range []struct{ name, head string }{
		{"bin8", "c4 10"},
		{"bin16", "c5 0010"},
		{"bin32", "c6 00000010"},
		{"fixstr", "b0"},
		{"str8", "d9 10"},
		{"str16", "da 0010"},
		{"str32", "db 00000010"},
	} {
		list = append(list, wire{name: form.name, in: "92 $t " + form.head + "$e1", events: one})
	}
	z := gzipped(unhex(vector1 + vector2))
	tr.wires(append(list,
		wire{name: "2,000 entries in a str32", in: "92 $t db 00007d00 " + long, events: many},
		wire{name: "2,000 entries in a bin32", in: "92 $t c6 00007d00 " + long, events: many},
		wire{name: "gzip in a str32", in: fmt.Sprintf("93 $t db %08x %x 82 %s %s $chunk", len(z), z, str("compressed"),
			str("gzip")), events: both, acks: "$ack"},
	)...)
}

func rule05(tr *trial) {
	b := []string{`5.000000000 {"m":"b"}`}
	e := []string{mb}
	tr.wires(
		wire{name: "entry in an array32", in: "92 $t 91 dd 00000002 $time $rec", events: e},
		wire{name: "entry in an array16", in: "92 $t 91 dc 0002 $time $rec", events: e},
		wire{name: "packed entry in an array32", in: "92 $t c4 14 dd 00000002 $time $rec", events: e},
		wire{name: "tag in a str8", in: "93 d9 06 $tag 05 $rec", events: b},
		wire{name: "tag in a str16", in: "93 da 0006 $tag 05 $rec", events: b},
		wire{name: "tag in a str32", in: "93 db 00000006 $tag 05 $rec", events: b},
		wire{name: "time in a uint8", in: "93 $t cc 05 $rec", events: b},
		wire{name: "time in a uint16", in: "93 $t cd 0005 $rec", events: b},
		wire{name: "time in a uint32", in: "93 $t ce 00000005 $rec", events: b},
		wire{name: "time in a uint64", in: "93 $t cf 0000000000000005 $rec", events: b},
		wire{name: "time in an int8", in: "93 $t d0 05 $rec", events: b},
		wire{name: "time in an int64", in: "93 $t d3 0000000000000005 $rec", events: b},
		wire{name: "time in a float64", in: "93 $t cb 4014000000000000 $rec", events: b},
		wire{name: "all in an array16", in: "dc 0003 $t 05 $rec", events: b},
		wire{name: "all in an array32", in: "dd 00000003 $t 05 $rec", events: b},
		wire{name: "entries in an array16", in: "92 $t dc 0001 $e1", events: one},
		wire{name: "entries in an array32", in: "92 $t dd 00000001 $e1", events: one},
		wire{name: "record in a map32", in: "93 $t 05 df 00000001 a1 6d a1 62", events: b},
		wire{name: "option in a map16", in: "94 $t 05 $rec de 0001 $chunk", events: b, acks: "$ack"},
	)
}

func rule06(tr *trial) {
	const after = "93 $t 92 $e1 $e2 81 $chunk"
	tr.wires(
		wire{name: "nil", in: "c0" + after, events: both, acks: "$ack"},
		wire{name: "int", in: "05" + after, events: both, acks: "$ack"},
		wire{name: "str", in: "a3 616263" + after, events: both, acks: "$ack"},
		wire{name: "a map", in: "81 a1 78 01" + after, events: both, acks: "$ack"},
		wire{name: "a float", in: "cb 0000000000000000" + after, events: both, acks: "$ack"},
		wire{name: "bin", in: "c4 03 010203" + after, events: both, acks: "$ack"},
		wire{name: "behind a message", in: after + "c0", events: both, acks: "$ack"},
		wire{name: "2,000 heartbeats", in: strings.Repeat("c0", 2000) + after, events: both, acks: "$ack"},
	)
}

func rule07(tr *trial) {
	const msg = "94 $t 05 $rec"
	b := []string{`5.000000000 {"m":"b"}`}
	tr.wires(
		wire{name: "absent", in: "93 $t 05 $rec", events: b},
		wire{name: "nil", in: msg + "c0", events: b},
		wire{name: "empty", in: msg + "80", events: b},
		wire{name: "unknown keys", in: msg + "83 a1 78 92 01 02 a3 616263 c4 01 79 a1 7a c0", events: b},
		wire{name: "unknown keys and an id", in: msg + "82 a1 78 92 01 02 $chunk", events: b, acks: "$ack"},
		wire{name: "nil, Forward mode", in: "93 $t 91 $e1 c0", events: one},
		wire{name: "nil, PackedForward mode", in: "93 $t c4 10 $e1 c0", events: one},
		wire{name: "an id that is nil", in: msg + "81 " + keyChunk + "c0", events: b},
	)
}

func rule08(tr *trial) {
	b := []string{`1441588984.000000000 {"m":"b"}`}
	tr.vector("the vector", "93 a1 74 ce 55ece6f8 81 a1 6d a1 62", "", b)
	tr.wires(
		wire{name: "without an option", in: "93 $t ce 55ece6f8 $rec", events: b},
		wire{name: "with one", in: "94 $t ce 55ece6f8 $rec 81 $chunk", events: b, acks: "$ack"},
	)
}

func rule09(tr *trial) {
	tr.vector("the vector", "93 a1 74 d7 00 55ece6f8 075bcd15 81 a1 6d a1 62", "", []string{mb})
	tr.wires(wire{name: "Message mode", in: "93 $t d7 00 55ece6f8 075bcd15 $rec", events: []string{mb}})
	// The two vectors have the same id, and so may go out on one connection only.
	tr.vector("the vectors of both modes", `93 a1 74 92 92 d7 00 55 ec e6 f8 07 5b cd 15 81 a1 6d a1 31 92 d7 00 55 ec e6 f8 07 5b cd 15 81 a1 6d a1 32
		81 a5 63 68 75 6e 6b b8 70 38 6e 39 67 6d 78 54 51 56 43 38 2f 6e 68 32 77 6c 4b 4b 65 51 3d 3d
		93 a1 74 c4 20 92 d7 00 55 ec e6 f8 07 5b cd 15 81 a1 6d a1 31 92 d7 00 55 ec e6 f8 07 5b cd 15 81 a1 6d a1 32
		82 a4 73 69 7a 65 02 a5 63 68 75 6e 6b b8 70 38 6e 39 67 6d 78 54 51 56 43 38 2f 6e 68 32 77 6c 4b 4b 65 51 3d 3d`,
		strings.Repeat("81 a3 61 63 6b b8 70 38 6e 39 67 6d 78 54 51 56 43 38 2f 6e 68 32 77 6c 4b 4b 65 51 3d 3d", 2),
		slices.Concat(both, both))
}

// vector sends bytes as they stand in docs/forward.md, with the tag t.
func (tr *trial) vector(name, in, acks string, events []string) {
	tr.run(name, func(p *probe) {
		s := tr.server(p, "plain")
		c := s.dial(p)
		var before int
		if s.lines != nil {
			p.must(s.lines.read())
			before = len(s.lines.byTag["t"])
		}
		c.send(unhex(in))
		got, id := c.fence()
		if want := unhex(acks); !bytes.Equal(got, want) {
			p.Errorf("the server wrote % x, want % x", clip(got), clip(want))
		}
		lines := s.settle(p, c, id, "t")
		wantLines(p, lines[before:], events, false)
	})
}

func rule10(tr *trial) {
	tr.vector("the vector", "93 a1 74 c7 08 00 55ece6f8 075bcd15 81 a1 6d a1 62", "", []string{mb})
	tr.wires(
		wire{name: "Message mode", in: "93 $t c7 08 00 55ece6f8 075bcd15 $rec", events: []string{mb}},
		wire{name: "Forward mode", in: "92 $t 91 92 c7 08 00 55ece6f8 075bcd15 $rec", events: []string{mb}},
		wire{name: "PackedForward mode", in: "92 $t c4 11 92 c7 08 00 55ece6f8 075bcd15 $rec", events: []string{mb}},
		wire{
			name: "the end of 2106", in: "93 $t d7 00 ffffffff 3b9ac9ff $rec",
			events: []string{`4294967295.999999999 {"m":"b"}`},
		},
		wire{name: "nanoseconds of 1e9", in: "93 $t d7 00 55ece6f8 3b9aca00 $rec"},
		wire{
			name: "nanoseconds of 1e9 among good ones",
			in:   "93 $t c4 20 92 d7 00 55ece6f8 3b9aca00 81 a1 6d a1 31 $e2 81 $chunk", events: both[1:], acks: "$ack",
		},
		wire{name: "another ext type for a time", in: "93 $t d7 01 55ece6f8 075bcd15 $rec"},
		wire{name: "another length for a time", in: "93 $t d6 00 55ece6f8 $rec"},
		wire{
			name: "ext in a record", in: "93 $t 05 81 a1 61 d4 05 ff",
			events: []string{`5.000000000 {"a":"ext:5:/w=="}`},
		},
	)
}

func rule11(tr *trial) {
	b := []string{now + `{"m":"b"}`}
	tr.wires(
		wire{name: "Message mode", in: "93 $t 00 $rec", events: b},
		wire{name: "Message mode with an id", in: "94 $t 00 $rec 81 $chunk", events: b, acks: "$ack"},
		wire{name: "EventTime", in: "93 $t d7 00 00000000 00000000 $rec", events: b},
		wire{name: "float", in: "93 $t cb 0000000000000000 $rec", events: b},
		wire{name: "with metadata", in: "93 $t 92 00 80 $rec", events: b},
		wire{name: "Forward mode", in: "92 $t 92 92 00 $rec $e1", events: []string{b[0], m1}},
		wire{
			name: "PackedForward mode", in: "92 $t c4 30 $e1 92 d7 00 00000000 00000000 $rec $e2",
			events: []string{m1, b[0], m2},
		},
	)
}

func rule12(tr *trial) {
	tr.wires(
		wire{name: "Message mode", in: "93 $t 05 c0"},
		wire{name: "Message mode with an id", in: "94 $t 05 c0 81 $chunk", acks: "$ack"},
		wire{name: "Forward mode", in: "93 $t 92 92 05 c0 $e1 81 $chunk", events: one, acks: "$ack"},
		wire{name: "PackedForward mode", in: "93 $t c4 13 $e1 92 05 c0 81 $chunk", events: one, acks: "$ack"},
		wire{name: "nothing else", in: "93 $t 91 92 05 c0 81 $chunk", acks: "$ack"},
	)
}

func rule13(tr *trial) {
	const entry, full = "92 92 $time 80 81 a1 6d a1 31", "92 92 $time 81 a1 6b a1 76 81 a1 6d a1 31"
	want, wantFull := at+`{} {"m":"1"}`, at+`{"k":"v"} {"m":"1"}`
	tr.vector("the vector in Forward mode", "92 a1 74 91 92 92 d7 00 55ece6f8 075bcd15 80 81 a1 6d a1 31", "",
		[]string{want})
	tr.wires(
		wire{name: "Message mode", in: "93 $t 92 $time 80 81 a1 6d a1 31", events: []string{want}},
		wire{
			name: "Message mode with an id", in: "94 $t 92 $time 81 a1 6b a1 76 81 a1 6d a1 31 81 $chunk",
			events: []string{wantFull}, acks: "$ack",
		},
		wire{
			name: "Forward mode", in: "93 $t 92" + entry + full + "81 $chunk", events: []string{want, wantFull},
			acks: "$ack",
		},
		wire{
			name: "PackedForward mode", in: "93 $t c4 38" + entry + full + "$e1 81 $chunk",
			events: []string{want, wantFull, m1}, acks: "$ack",
		},
	)
}

func rule14(tr *trial) {
	const signal = "82 ad 666c75656e745f7369676e616c "
	tr.wires(
		wire{name: "0", in: "93 $t c4 10 $e1 " + signal + "00 $chunk", events: one, acks: "$ack"},
		wire{name: "metrics", in: "93 $t c4 10 $e1 " + signal + "01 $chunk", loose: true},
		wire{name: "traces", in: "93 $t c4 10 $e1 " + signal + "02 $chunk", loose: true},
	)
}

func rule15(tr *trial) {
	tr.wires(
		wire{name: "Forward mode", in: "93 $t 90 81 $chunk", acks: "$ack", acksOnly: true},
		wire{name: "PackedForward mode, bin", in: "93 $t c4 00 81 $chunk", acks: "$ack", acksOnly: true},
		wire{name: "PackedForward mode, str", in: "93 $t a0 81 $chunk", acks: "$ack", acksOnly: true},
	)
}

func rule16(tr *trial) {
	var list []wire
	for _, size := range []struct{ name, hex string }{
		{"right", "02"},
		{"0", "00"},
		{"1", "01"},
		{"1,000", "cd 03e8"},
		{"2 to the 64th", "cf ffffffffffffffff"},
		{"negative", "d0 80"},
		{"a str", "a1 78"},
		{"nil", "c0"},
	} {
		for _, mode := range []struct{ name, in string }{
			{"PackedForward", "93 $t c4 20 $e1 $e2"},
			{"Forward", "93 $t 92 $e1 $e2"},
		} {
			list = append(list, wire{
				name: mode.name + " mode, size " + size.name,
				in:   mode.in + "82 a4 73697a65 " + size.hex + "$chunk", events: both, acks: "$ack",
			})
		}
	}
	tr.wires(list...)
}
