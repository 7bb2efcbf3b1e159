// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/binary"
	"math"
)

// All Append functions write the shortest form that holds the value.

// AppendNil appends nil.
func AppendNil(b []byte) []byte { return append(b, codeNil) }

// AppendBool appends false or true.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, codeTrue)
	}
	return append(b, codeFalse)
}

// AppendInt appends an integer. One that is not negative is written as AppendUint writes it.
func AppendInt(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return AppendUint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	case v >= math.MinInt8:
		return append(b, codeInt8, byte(v))
	case v >= math.MinInt16:
		return append(b, codeInt16, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, codeInt32), uint32(v))
	default:
		return binary.BigEndian.AppendUint64(append(b, codeInt64), uint64(v))
	}
}

// AppendUint appends an integer.
func AppendUint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<8:
		return append(b, codeUint8, byte(v))
	case v < 1<<16:
		return append(b, codeUint16, byte(v>>8), byte(v))
	case v < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, codeUint32), uint32(v))
	default:
		return binary.BigEndian.AppendUint64(append(b, codeUint64), v)
	}
}

// AppendFloat32 appends a float of 32 bits, NaN and infinities included.
func AppendFloat32(b []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(append(b, codeFloat32), math.Float32bits(v))
}

// AppendFloat64 appends a float of 64 bits, NaN and infinities included.
func AppendFloat64(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, codeFloat64), math.Float64bits(v))
}

// AppendString appends a str. It is not checked to be UTF-8.
func AppendString(b []byte, s string) []byte {
	return append(AppendStringHeader(b, len(s)), s...)
}

// AppendStringHeader appends what stands before the n bytes of a str. It panics if n is no length:
// below 0 or above 1<<32 - 1.
func AppendStringHeader(b []byte, n int) []byte {
	switch {
	case uint(n) < 1<<5:
		return append(b, codeFixStr|byte(n))
	case uint(n) < 1<<8:
		return append(b, codeStr8, byte(n))
	case uint(n) < 1<<16:
		return append(b, codeStr16, byte(n>>8), byte(n))
	default:
		return append32(b, codeStr32, n)
	}
}

// AppendBin appends a bin.
func AppendBin(b, p []byte) []byte {
	return append(AppendBinHeader(b, len(p)), p...)
}

// AppendBinHeader appends what stands before the n bytes of a bin. It panics if n is no length:
// below 0 or above 1<<32 - 1.
func AppendBinHeader(b []byte, n int) []byte {
	switch {
	case uint(n) < 1<<8:
		return append(b, codeBin8, byte(n))
	case uint(n) < 1<<16:
		return append(b, codeBin16, byte(n>>8), byte(n))
	default:
		return append32(b, codeBin32, n)
	}
}

// AppendArrayHeader appends what stands before the n elements of an array. It panics if n is below
// 0 or above 1<<32 - 1.
func AppendArrayHeader(b []byte, n int) []byte {
	switch {
	case uint(n) < 1<<4:
		return append(b, codeFixArray|byte(n))
	case uint(n) < 1<<16:
		return append(b, codeArray16, byte(n>>8), byte(n))
	default:
		return append32(b, codeArray32, n)
	}
}

// AppendMapHeader appends what stands before the n pairs of a map. It panics if n is below 0 or
// above 1<<32 - 1.
func AppendMapHeader(b []byte, n int) []byte {
	switch {
	case uint(n) < 1<<4:
		return append(b, codeFixMap|byte(n))
	case uint(n) < 1<<16:
		return append(b, codeMap16, byte(n>>8), byte(n))
	default:
		return append32(b, codeMap32, n)
	}
}

// AppendExt appends an extension value of the given type.
func AppendExt(b []byte, typ int8, data []byte) []byte {
	return append(AppendExtHeader(b, typ, len(data)), data...)
}

// AppendExtHeader appends what stands before the n bytes of an extension value. It panics if n is
// no length: below 0 or above 1<<32 - 1.
func AppendExtHeader(b []byte, typ int8, n int) []byte {
	switch {
	case n == 1:
		b = append(b, codeFixExt1)
	case n == 2:
		b = append(b, codeFixExt2)
	case n == 4:
		b = append(b, codeFixExt4)
	case n == 8:
		b = append(b, codeFixExt8)
	case n == 16:
		b = append(b, codeFixExt16)
	case uint(n) < 1<<8:
		b = append(b, codeExt8, byte(n))
	case uint(n) < 1<<16:
		b = append(b, codeExt16, byte(n>>8), byte(n))
	default:
		b = append32(b, codeExt32, n)
	}
	return append(b, byte(typ))
}

// append32 panics rather than write a header that claims another length than the one that follows:
// the reader would take payload for headers.
func append32(b []byte, code byte, n int) []byte {
	if n < 0 || uint64(n) > math.MaxUint32 {
		panic("msgpack: length out of range")
	}
	return binary.BigEndian.AppendUint32(append(b, code), uint32(n))
}
