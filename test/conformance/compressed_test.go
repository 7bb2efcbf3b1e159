// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Rules 17 to 19: compressed and corrupt chunks.

// gzipped makes a member of each part.
func gzipped(parts ...[]byte) []byte {
	var out bytes.Buffer
	for _, b := range parts {
		z := gzip.NewWriter(&out)
		if _, err := z.Write(b); err != nil {
			panic(err)
		}
		if err := z.Close(); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// zstdOf makes a frame of each part.
func zstdOf(parts ...[]byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	var out []byte
	for _, b := range parts {
		out = z.EncodeAll(b, out)
	}
	return out
}

// compressed is a packed message with an id.
func compressed(how string, payload []byte) string {
	return packed(payload, str("compressed"), str(how), keyChunk, "$1")
}

func rule17(tr *trial) {
	e1, e2 := unhex(vector1), unhex(vector2)
	two := slices.Concat(e1, e2)
	tr.wires(
		wire{name: "text", in: compressed("text", two), events: both, acks: "$ack"},
		wire{name: "gzip", in: compressed("gzip", gzipped(two)), events: both, acks: "$ack"},
		wire{name: "gzip, a member per event", in: compressed("gzip", gzipped(e1, e2)), events: both, acks: "$ack"},
		wire{
			name: "gzip, members cut within an entry", in: compressed("gzip", gzipped(two[:5], two[5:20], two[20:])),
			events: both, acks: "$ack",
		},
		wire{name: "zstd", in: compressed("zstd", zstdOf(two)), events: both, acks: "$ack"},
		wire{name: "zstd, a frame per event", in: compressed("zstd", zstdOf(e1, e2)), events: both, acks: "$ack"},
		wire{name: "unknown, then a good one", in: compressed("lzma", two) + "$good", events: both, acks: "$ack2"},
	)
}

func rule18(tr *trial) {
	two := unhex(vector1 + vector2)
	z, f := gzipped(two), zstdOf(two)
	flipped := slices.Clone(z)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	bad := func(name, in string) wire {
		return wire{name: name + ", then a good one", in: in + "$good", events: both, acks: "$ack2"}
	}
	tr.wires(
		bad("a wrong checksum", compressed("gzip", flipped)),
		bad("truncated gzip", compressed("gzip", z[:len(z)-9])),
		bad("gzip without its last byte", compressed("gzip", z[:len(z)-1])),
		bad("gzip that is none", compressed("gzip", two)),
		bad("broken string as gzip", compressed("gzip", []byte("broken string"))),
		bad("truncated second member", compressed("gzip", append(slices.Clone(z), z[:12]...))),
		bad("truncated zstd", compressed("zstd", f[:len(f)-3])),
		bad("zstd that is none", compressed("zstd", two)),
		bad("entries that break off", packed(two[:len(two)-1], keyChunk, "$1")),
		bad("compressed entries that break off", compressed("gzip", gzipped(two[:20]))),
		bad("a byte that is no MessagePack", packed([]byte{0x92, 0xc1}, keyChunk, "$1")),
		bad("a claim that cannot be", packed(unhex("dd ffffffff"), keyChunk, "$1")),
		bad("broken string", packed([]byte("broken string"), keyChunk, "$1")),
		bad("broken string as str", "93 $t "+str("broken string")+"81 $chunk"),
	)
}

func rule19(tr *trial) {
	const in = "limits"
	size := func(p *probe) int { return int(tr.server(p, in).maxUnpacked) }
	tr.run("as much as is allowed", func(p *probe) {
		n := size(p) / 16
		w := wire{
			in: compressed("gzip", gzipped(bytes.Repeat(unhex(vector1), n))), events: slices.Repeat(one, n),
			acks: "$ack",
		}
		w.play(p, tr.server(p, in), false)
	})
	bomb := func(name string, pack func([]byte) string) {
		tr.run(name, func(p *probe) {
			n := size(p)/16 + 1
			w := wire{in: pack(bytes.Repeat(unhex(vector1), n)) + "$good", events: both, acks: "$ack2"}
			w.play(p, tr.server(p, in), false)
		})
	}
	bomb("more in gzip", func(b []byte) string { return compressed("gzip", gzipped(b)) })
	bomb("more in zstd", func(b []byte) string { return compressed("zstd", zstdOf(b)) })
	bomb("more in two members", func(b []byte) string {
		return compressed("gzip",
			gzipped(b[:len(b)/2], b[len(b)/2:]))
	})
	bomb("300 times as much in gzip", func(b []byte) string {
		return compressed("gzip",
			gzipped(bytes.Repeat(b, 300)))
	})
	// Zeros are one-byte integers, so not a single entry is in them.
	zeros := make([]byte, 4<<20)
	for how, z := range map[string][]byte{"gzip": gzipped(zeros), "zstd": zstdOf(zeros)} {
		tr.wires(wire{
			name: "300 MiB of zeros in " + how, in: compressed(how, bytes.Repeat(z, 75)) + "$good",
			events: both, acks: "$ack2",
		})
	}
	tr.run("too much before decompression", func(p *probe) {
		s := tr.server(p, in)
		junk := strings.Repeat("00", int(s.maxChunk)+1<<20)
		w := wire{in: fmt.Sprintf("93 $t c6 %08x %s 82 %s %s $chunk", len(junk)/2, junk, str("compressed"),
			str("gzip")), closes: true}
		w.play(p, s, false)
	})
}
