// SPDX-License-Identifier: Apache-2.0

package wire

// The few MessagePack codes that are looked at without the package's help, because they are looked
// at for every event.
const (
	CodeNil     = 0xc0
	codeExt8    = 0xc7
	codeUint32  = 0xce
	codeFixExt8 = 0xd7
	CodeArray0  = 0x90
	CodeArray2  = 0x92
	codeStr0    = 0xa0
	codeStr8    = 0xd9
	CodeArray16 = 0xdc
	CodeArray32 = 0xdd
	CodeMap0    = 0x80
	CodeMap16   = 0xde
	codeMap32   = 0xdf
)

// IsArray tells whether a code begins an array.
func IsArray(code byte) bool { return code&0xf0 == 0x90 || code == CodeArray16 || code == CodeArray32 }

// IsMap tells whether a code begins a map.
func IsMap(code byte) bool { return code&0xf0 == CodeMap0 || code == CodeMap16 || code == codeMap32 }
