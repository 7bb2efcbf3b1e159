// SPDX-License-Identifier: Apache-2.0

package record

import "github.com/spillwaylog/spillway/msgpack"

const (
	fixMap = 0x80 // the header of a map of at most 15 pairs, in the low 4 bits
	map16  = 0xde
	map32  = 0xdf
)

// BeginMap appends the header of a map of about n pairs, the true number being known only later.
// EndMap needs at.
func BeginMap(dst []byte, n int) (out []byte, at int) {
	at = len(dst)
	switch {
	case n <= 15:
		return append(dst, fixMap), at
	case n <= 0xffff:
		return append(dst, map16, 0, 0), at
	}
	return append(dst, map32, 0, 0, 0, 0), at
}

// EndMap writes the number of pairs, n, into the header that BeginMap left at. A header that is
// wider than need be stays so; if it is too narrow, what stands behind it is moved.
func EndMap(dst []byte, at, n int) []byte {
	was := 1
	switch dst[at] {
	case map16:
		was = 3
		if n <= 0xffff {
			dst[at+1], dst[at+2] = byte(n>>8), byte(n)
			return dst
		}
	case map32:
		dst[at+1], dst[at+2], dst[at+3], dst[at+4] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
		return dst
	default:
		if n <= 15 {
			dst[at] = fixMap | byte(n)
			return dst
		}
	}
	var h [5]byte
	header := msgpack.AppendMapHeader(h[:0], n)
	dst = append(dst, header[was:]...)
	copy(dst[at+len(header):], dst[at+was:])
	copy(dst[at:], header)
	return dst
}
