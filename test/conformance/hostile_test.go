// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Rules 20 to 23 and 30: claims, odd values, invalid entries, chunks that are too large.

func rule20(tr *trial) {
	claims := []wire{
		{name: "array32 of entries", in: "92 $t dd ffffffff"},
		{name: "str32 of entries", in: "92 $t db ffffffff"},
		{name: "bin32 of entries", in: "92 $t c6 ffffffff"},
		{name: "a tag", in: "92 db ffffffff"},
		{name: "a record", in: "93 $t 05 df ffffffff"},
		{name: "a value", in: "93 $t 05 81 a1 6d db ffffffff"},
		{name: "a value of an entry", in: "92 $t 91 92 05 81 a1 6d c6 ffffffff"},
		{name: "a map that is nobody's", in: "df ffffffff"},
		{name: "dc ff ff 24,000 times", in: strings.Repeat("dc ffff ", 24000)},
		{name: "arrays nested 100,000 deep", in: strings.Repeat("91", 100000)},
		{name: "a record nested 50,000 deep", in: "93 $t 05 " + strings.Repeat("81 a1 78 ", 50000)},
		{name: "entries nested 100,000 deep", in: "92 $t " + strings.Repeat("91", 100000)},
	}
	for i := range claims {
		claims[i].closes = true
	}
	claims = append(claims, wire{
		name: "behind a good chunk", in: "93 $t 92 $e1 $e2 81 $chunk 92 $t dd ffffffff",
		events: both, acks: "$ack", closes: true,
	})
	tr.wires(claims...)
}

func rule21(tr *trial) {
	tr.wires(
		wire{name: "a key as bin", in: "93 $t 05 81 c4 01 6d a1 62", events: []string{`5.000000000 {"m":"b"}`}},
		wire{
			name: "no UTF-8", in: "93 $t 05 81 a1 ff a1 fe",
			events: []string{`5.000000000 {"` + "\ufffd" + `":"` + "\ufffd" + `"}`},
		},
		wire{
			name: "order", in: "93 $t 05 83 a1 7a 01 a1 61 02 a1 6d 03",
			events: []string{`5.000000000 {"z":1,"a":2,"m":3}`}, ordered: true,
		},
		wire{
			name: "a repeated key", in: "93 $t 05 83 a1 7a 01 a1 61 02 a1 7a 03",
			events: []string{`5.000000000 {"z":1,"a":2,"z":3}`}, ordered: true,
		},
	)
}

func rule22(tr *trial) {
	value := func(name, in, json string) wire {
		return wire{name: name, in: "93 $t 05 81 a1 61 " + in, events: []string{`5.000000000 {"a":` + json + `}`}}
	}
	tr.wires(
		value("the largest uint64", "cf ffffffffffffffff", "18446744073709551615"),
		value("the smallest int64", "d3 8000000000000000", "-9223372036854775808"),
		value("NaN", "cb 7ff8000000000001", "null"),
		value("plus infinity", "cb 7ff0000000000000", "null"),
		value("minus infinity", "cb fff0000000000000", "null"),
		value("minus zero", "cb 8000000000000000", "-0"),
		value("keys that are no strings", "82 05 01 c3 02", `{"5":1,"true":2}`),
		value("a key that is an array", "81 92 01 02 c0", `{"[1,2]":null}`),
		value("bin", "c4 02 6869", `"hi"`),
		value("EventTime", "d7 00 55ece6f8 075bcd15", `"2015-09-07T01:23:04.123456789Z"`),
		value("another ext", "c7 03 80 010203", `"ext:-128:AQID"`),
		value("nil and booleans", "93 c0 c2 c3", "[null,false,true]"),
	)
}

func rule23(tr *trial) {
	const bad = "92 a1 31 80 92 05 a1 78 91 05 "
	const forward = "93 $t 95 $e1" + bad + "$e2 81 $chunk"
	const packed23 = "93 $t c4 2a $e1" + bad + "$e2 81 $chunk"
	tr.wires(
		wire{name: "a time that is a str", in: "93 $t 93 $e1 92 a1 31 80 $e2 81 $chunk", events: both, acks: "$ack"},
		wire{name: "a record that is a str", in: "93 $t 93 $e1 92 05 a1 78 $e2 81 $chunk", events: both, acks: "$ack"},
		wire{name: "an entry that is an int", in: "93 $t 93 $e1 05 $e2 81 $chunk", events: both, acks: "$ack"},
		wire{name: "an entry of one element", in: "93 $t 93 $e1 91 05 $e2 81 $chunk", events: both, acks: "$ack"},
		wire{name: "several", in: forward, events: both, acks: "$ack"},
		wire{name: "several, packed", in: packed23, events: both, acks: "$ack"},
		wire{
			name: "several, in gzip", in: compressed("gzip", gzipped(unhex(vector1+bad+vector2))), events: both,
			acks: "$ack",
		},
		wire{name: "a message, then a good one", in: "93 $t 05 91 01 $good", events: both, acks: "$ack2"},
		wire{
			name: "refused by setting, Forward mode", in: forward + "$good", events: both, acks: "$ack2",
			setting: "refuse invalid",
		},
		wire{
			name: "refused by setting, PackedForward mode", in: packed23 + "$good", events: both, acks: "$ack2",
			setting: "refuse invalid",
		},
		wire{
			name: "refused by setting, Message mode", in: "94 $t 05 91 01 81 $chunk $good", events: both,
			acks: "$ack2", setting: "refuse invalid",
		},
	)
}

func rule30(tr *trial) {
	// Whether a limit counts the frame around the entries is not the protocol's business.
	const slack = 256 << 10
	large := func(name string, build func(limit int) string) {
		tr.run(name, func(p *probe) {
			s := tr.server(p, "limits")
			w := wire{in: "$good" + build(int(s.maxChunk)+slack), events: both, acks: "$ack2", closes: true}
			w.play(p, s, false)
			if s.own != nil && !strings.Contains(s.own.said(), "too large") {
				p.Errorf("the reason is not logged")
			}
		})
	}
	large("PackedForward mode", func(n int) string {
		n = n/16 + 1
		return fmt.Sprintf("93 $t c6 %08x %s 81 $chunk", 16*n, strings.Repeat(vector1, n))
	})
	large("Forward mode", func(n int) string {
		n = n/16 + 1
		return fmt.Sprintf("93 $t dd %08x %s 81 $chunk", n, strings.Repeat(vector1, n))
	})
	large("Message mode", func(n int) string {
		n = n/0x7fff + 8
		return fmt.Sprintf("94 $t 05 de %04x %s 81 $chunk", n,
			strings.Repeat("a1 78 da 7fff"+strings.Repeat("61", 0x7fff), n))
	})
	tr.run("as much as is allowed", func(p *probe) {
		s := tr.server(p, "limits")
		n := int(s.maxChunk) / (16 + 1<<10)
		entry := "92 $time 81 a1 6d " + str(strings.Repeat("x", 1<<10))
		w := wire{
			in: fmt.Sprintf("93 $t dc %04x %s 81 $chunk", n, strings.Repeat(entry, n)), acks: "$ack",
			events: slices.Repeat([]string{at + `{"m":"` + strings.Repeat("x", 1<<10) + `"}`}, n),
		}
		w.play(p, s, false)
	})
}
