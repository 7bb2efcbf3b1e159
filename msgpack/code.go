// SPDX-License-Identifier: Apache-2.0

package msgpack

// First bytes of values. Not listed: 00-7f and e0-ff are the integers 0..127 and -32..-1
// themselves.
const (
	codeFixMap   = 0x80 // 80-8f: pairs in the low 4 bits
	codeFixArray = 0x90 // 90-9f: elements in the low 4 bits
	codeFixStr   = 0xa0 // a0-bf: bytes in the low 5 bits

	codeNil      = 0xc0
	codeInvalid  = 0xc1
	codeFalse    = 0xc2
	codeTrue     = 0xc3
	codeBin8     = 0xc4
	codeBin16    = 0xc5
	codeBin32    = 0xc6
	codeExt8     = 0xc7
	codeExt16    = 0xc8
	codeExt32    = 0xc9
	codeFloat32  = 0xca
	codeFloat64  = 0xcb
	codeUint8    = 0xcc
	codeUint16   = 0xcd
	codeUint32   = 0xce
	codeUint64   = 0xcf
	codeInt8     = 0xd0
	codeInt16    = 0xd1
	codeInt32    = 0xd2
	codeInt64    = 0xd3
	codeFixExt1  = 0xd4
	codeFixExt2  = 0xd5
	codeFixExt4  = 0xd6
	codeFixExt8  = 0xd7
	codeFixExt16 = 0xd8
	codeStr8     = 0xd9
	codeStr16    = 0xda
	codeStr32    = 0xdb
	codeArray16  = 0xdc
	codeArray32  = 0xdd
	codeMap16    = 0xde
	codeMap32    = 0xdf
)

// steps says by its first byte how a value is passed:
//
//	0x01-0x7f  a scalar or a short str or ext of so many bytes, the first one included
//	0x80-0xbf  a short array or map of so many values (low 6 bits; a pair is two)
//	0xc1-0xcc  a length of 1, 2 or 4 bytes (low 3 bits) follows, then that many bytes, and one more (bit 3) for the type of an ext
//	0xe0       an array or map whose count follows, or the invalid byte: rare, so left to Scanner.open
var steps = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c < codeFixMap || c >= 0xe0:
			t[c] = 1
		case c < codeFixArray:
			t[c] = 0x80 | uint8(c&0x0f*2)
		case c < codeFixStr:
			t[c] = 0x80 | uint8(c&0x0f)
		case c < codeNil:
			t[c] = 1 + uint8(c&0x1f)
		}
	}
	copy(t[codeNil:], []uint8{
		1, 0xe0, 1, 1, // nil, invalid, false, true
		0xc1, 0xc2, 0xc4, 0xc9, 0xca, 0xcc, // bin, ext
		5, 9, 2, 3, 5, 9, 2, 3, 5, 9, // float, uint, int
		3, 4, 6, 10, 18, // fixext
		0xc1, 0xc2, 0xc4, // str
		0xe0, 0xe0, 0xe0, 0xe0, // array, map
	})
	return t
}()
