// SPDX-License-Identifier: Apache-2.0

package record

import "github.com/spillwaylog/spillway/msgpack"

// BeginMap appends the header of a map whose number of pairs is not known yet, with room for about n pairs. EndMap needs at.
func BeginMap(dst []byte, n int) (out []byte, at int) {
	at = len(dst)
	if n <= 15 {
		return append(dst, 0x80), at
	}
	return append(dst, 0xde, 0, 0), at
}

// EndMap writes the number of pairs, n, into the header that BeginMap left at. If it does not fit, what stands behind it is moved.
func EndMap(dst []byte, at, n int) []byte {
	switch {
	case dst[at] == 0xde && n <= 0xffff:
		dst[at+1], dst[at+2] = byte(n>>8), byte(n)
		return dst
	case dst[at] == 0x80 && n <= 15:
		dst[at] = 0x80 | byte(n)
		return dst
	}
	was := 1
	if dst[at] == 0xde {
		was = 3
	}
	var h [5]byte
	header := msgpack.AppendMapHeader(h[:0], n)
	dst = append(dst, header[was:]...)
	copy(dst[at+len(header):], dst[at+was:])
	copy(dst[at:], header)
	return dst
}
