// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spillwaylog/spillway/forward/internal/vectors"
	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
)

// oddStream makes messages of which many are odd: of unusual times, metadata, records of other
// kinds, deep ones, claims, and here and there a wrong byte.
type oddStream struct{ *rand.Rand }

// one tells whether one of n is due.
func (r oddStream) one(n int) bool { return r.IntN(n) == 0 }

var oddTimes = []string{
	"00", "05", "ce 55ece6f8", "cf 0000000055ece6f8", "cb 41d57b39be07e6b7", "c7 08 00 55ece6f8 075bcd15",
	"d7 00 00000000 00000000",
	"d7 00 55ece6f8 ffffffff", "d7 01 55ece6f8 075bcd15", "c0", "d3 8000000000000000", "ca 00000000",
}

func (r oddStream) time() []byte {
	if r.one(2) {
		return unhex(oddTimes[r.IntN(len(oddTimes))])
	}
	return unhex(hexTime)
}

func (r oddStream) value(depth int) []byte {
	switch r.IntN(14) {
	case 0:
		return []byte{wire.CodeNil}
	case 1:
		return msgpack.AppendInt(nil, r.Int64()>>r.IntN(64))
	case 2:
		return msgpack.AppendString(nil, string(make([]byte, r.IntN(400))))
	case 3:
		return msgpack.AppendBin(nil, make([]byte, r.IntN(40)))
	case 4:
		return unhex("c7 03 05 010203")
	case 5, 6:
		if depth > 0 {
			return r.pairs(depth - 1)
		}
	case 7:
		if depth > 0 {
			n := r.IntN(20)
			b := msgpack.AppendArrayHeader(nil, n)
			for range n {
				b = append(b, r.value(depth-1)...)
			}
			return b
		}
	case 8:
		if r.one(40) {
			return append(slices.Repeat([]byte{wire.CodeArray0 + 1}, wire.MaxDepth-8+r.IntN(14)), wire.CodeNil)
		}
	case 9:
		if r.one(20) {
			return unhex([]string{"c1", "dd ffffffff", "db 0fffffff"}[r.IntN(3)])
		}
	}
	return msgpack.AppendString(nil, "text")
}

func (r oddStream) pairs(depth int) []byte {
	n := r.IntN(4)
	if r.one(10) {
		n = r.IntN(30)
	}
	b := msgpack.AppendMapHeader(nil, n)
	if r.one(10) {
		b = []byte{wire.CodeMap16, 0, byte(n)}
	}
	for range n {
		if r.one(20) {
			b = append(b, r.value(0)...)
		} else {
			b = msgpack.AppendString(b, []string{"m", "ip", "key", "longer"}[r.IntN(4)])
		}
		b = append(b, r.value(depth)...)
	}
	return b
}

func (r oddStream) record() []byte {
	switch r.IntN(24) {
	case 0:
		return []byte{wire.CodeNil}
	case 1:
		return r.value(2)
	}
	return r.pairs(3)
}

// when is a time, or a time with metadata.
func (r oddStream) when() []byte {
	switch r.IntN(20) {
	case 0, 1:
		return slices.Concat([]byte{wire.CodeArray2}, r.time(), []byte{wire.CodeMap0})
	case 2, 3:
		return slices.Concat([]byte{wire.CodeArray2}, r.time(), r.pairs(2))
	case 4:
		return slices.Concat([]byte{wire.CodeArray2}, r.time(), r.value(2))
	case 5:
		return slices.Concat([]byte{wire.CodeArray2 + 1}, r.time(), []byte{wire.CodeMap0, wire.CodeMap0})
	case 6:
		return slices.Concat([]byte{wire.CodeArray16, 0, 2}, r.time(), []byte{wire.CodeMap0})
	}
	return r.time()
}

func (r oddStream) entries() (b []byte, n int) {
	n = r.IntN(30)
	for range n {
		switch r.IntN(30) {
		case 0:
			b = append(b, r.value(2)...)
		case 1:
			b = slices.Concat(b, []byte{wire.CodeArray2 + 1}, r.when(), r.record(), r.value(1))
		case 2:
			b = slices.Concat(b, []byte{wire.CodeArray32, 0, 0, 0, 2}, r.when(), r.record())
		default:
			b = slices.Concat(b, []byte{wire.CodeArray2}, r.when(), r.record())
		}
	}
	return b, n
}

func (r oddStream) option() []byte {
	switch r.IntN(8) {
	case 0:
		return r.value(2)
	case 1:
		return r.pairs(2)
	}
	return unhex("81" + hexChunk)
}

func (r oddStream) message() []byte {
	n := 3
	var body, option []byte
	switch r.IntN(6) {
	case 0:
		e, k := r.entries()
		body, n = append(msgpack.AppendArrayHeader(nil, k), e...), 2
	case 1:
		e, _ := r.entries()
		if r.one(6) {
			e = e[:r.IntN(len(e)+1)]
		}
		body, n = msgpack.AppendBin(nil, e), 2
	case 2:
		e, _ := r.entries()
		return slices.Concat(unhex("93 a1 7a"), msgpack.AppendBin(nil, gzipOf(e)),
			unhex("82 aa 636f6d70726573736564 a4 677a6970"+hexChunk))
	default:
		body = append(r.when(), r.record()...)
	}
	if r.one(2) {
		option = r.option()
		n++
	}
	b := []byte{byte(wire.CodeArray0 + n)}
	switch {
	case r.one(30):
		b = []byte{wire.CodeArray16, 0, byte(n)}
	case r.one(100):
		b[0]++
	}
	switch r.IntN(12) {
	case 0:
		b = msgpack.AppendString(b, string(make([]byte, 40+r.IntN(400))))
	case 1:
		b = msgpack.AppendBin(b, []byte("bin"))
	default:
		b = msgpack.AppendString(b, fmt.Sprintf("tag%d", r.IntN(3)))
	}
	return slices.Concat(b, body, option)
}

func (r oddStream) stream() []byte {
	var b []byte
	for range 1 + r.IntN(8) {
		b = append(b, r.message()...)
	}
	if r.one(4) {
		b[r.IntN(len(b))] = byte(r.IntN(256))
	}
	if r.one(6) {
		b = b[:r.IntN(len(b))]
	}
	return b
}

// Odd messages, whole, in pieces of random lengths and byte by byte: the events, acks and
// peerErrors are the same, to the text of the errors.
func TestRule01OddStreams(t *testing.T) {
	for seed := range needs.Rounds(t, "FORWARD_ODD_ROUNDS", 200, 800) {
		r := oddStream{rand.New(rand.NewPCG(uint64(seed), 7))}
		b := r.stream()
		how := make([]byte, 1+r.IntN(6))
		for i := range how {
			how[i] = byte(r.Uint32()) >> (5 * r.IntN(2))
		}
		set := func(s *Server) {
			s.MaxChunk, s.MaxDecompressed, s.Memory = 1<<16, 1<<18, 1<<16
			switch seed % 4 {
			case 0:
				s.Endpoint.AddressKey = "ip"
			case 1:
				s.MaxChunk = 300
			case 2:
				s.RefuseInvalid = seed%16 == 2
			}
		}
		whole := play(set, b)
		for _, pieces := range [][][]byte{vectors.Cut(b, how), bytewise(b)} {
			o := play(set, pieces...)
			same(t, o, whole)
			if got, want := fmt.Sprint(o.peerErrors), fmt.Sprint(whole.peerErrors); got != want {
				t.Errorf("peerErrors %s, want %s", got, want)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d, pieces %v: %x", seed, how, b)
		}
	}
}
