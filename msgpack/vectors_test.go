// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
)

// A vector is a value on the wire. All tests of reading and writing go through the same table.
type vector struct {
	name  string
	wire  string                // hex, with spaces
	write func(b []byte) []byte // nil where the wire has not the shortest form
	json  string
	kind  Kind
}

func (v vector) bytes(t testing.TB) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(v.wire, " ", ""))
	if err != nil {
		t.Fatal(v.name, err)
	}
	return b
}

func repeatHex(h string, n int) string { return strings.Repeat(h, n) }

func writeInt(v int64) func([]byte) []byte { return func(b []byte) []byte { return AppendInt(b, v) } }

func writeUint(v uint64) func([]byte) []byte {
	return func(b []byte) []byte { return AppendUint(b, v) }
}

func writeFloat(v float64) func([]byte) []byte {
	return func(b []byte) []byte { return AppendFloat64(b, v) }
}

func writeString(v string) func([]byte) []byte {
	return func(b []byte) []byte { return AppendString(b, v) }
}

func writeBin(n int) func([]byte) []byte {
	return func(b []byte) []byte { return AppendBin(b, []byte(strings.Repeat("b", n))) }
}

func writeFloat32(v float32) func([]byte) []byte {
	return func(b []byte) []byte { return AppendFloat32(b, v) }
}

func writeExt(typ int8, n int) func([]byte) []byte {
	return func(b []byte) []byte { return AppendExt(b, typ, make([]byte, n)) }
}

func writeArray(n int) func([]byte) []byte {
	return func(b []byte) []byte {
		b = AppendArrayHeader(b, n)
		for range n {
			b = AppendInt(b, 1)
		}
		return b
	}
}

func writeMap(n int) func([]byte) []byte {
	return func(b []byte) []byte {
		b = AppendMapHeader(b, n)
		for range n {
			b = AppendBool(AppendString(b, "k"), true)
		}
		return b
	}
}

var vectors = []vector{
	{"nil", "c0", AppendNil, `null`, KindNil},
	{"false", "c2", func(b []byte) []byte { return AppendBool(b, false) }, `false`, KindBool},
	{"true", "c3", func(b []byte) []byte { return AppendBool(b, true) }, `true`, KindBool},

	{"0", "00", writeInt(0), `0`, KindUint},
	{"127", "7f", writeInt(127), `127`, KindUint},
	{"-1", "ff", writeInt(-1), `-1`, KindInt},
	{"-32", "e0", writeInt(-32), `-32`, KindInt},
	{"uint8 min", "cc 80", writeInt(128), `128`, KindUint},
	{"uint8 max", "cc ff", writeUint(255), `255`, KindUint},
	{"uint8 long", "cc 05", nil, `5`, KindUint},
	{"uint16 min", "cd 01 00", writeUint(256), `256`, KindUint},
	{"uint16 max", "cd ff ff", writeInt(65535), `65535`, KindUint},
	{"uint32 min", "ce 00 01 00 00", writeInt(65536), `65536`, KindUint},
	{"uint32 max", "ce ff ff ff ff", writeUint(math.MaxUint32), `4294967295`, KindUint},
	{"uint64 min", "cf 00 00 00 01 00 00 00 00", writeInt(1 << 32), `4294967296`, KindUint},
	{"uint64 of int63", "cf 7f ff ff ff ff ff ff ff", writeInt(math.MaxInt64), `9223372036854775807`, KindUint},
	{"uint64 above int63", "cf 80 00 00 00 00 00 00 00", writeUint(1 << 63), `9223372036854775808`, KindUint},
	{"uint64 max", "cf ff ff ff ff ff ff ff ff", writeUint(math.MaxUint64), `18446744073709551615`, KindUint},
	{"int8 max", "d0 df", writeInt(-33), `-33`, KindInt},
	{"int8 min", "d0 80", writeInt(-128), `-128`, KindInt},
	{"int8 positive", "d0 05", nil, `5`, KindInt},
	{"int16 max", "d1 ff 7f", writeInt(-129), `-129`, KindInt},
	{"int16 min", "d1 80 00", writeInt(math.MinInt16), `-32768`, KindInt},
	{"int32 max", "d2 ff ff 7f ff", writeInt(math.MinInt16 - 1), `-32769`, KindInt},
	{"int32 min", "d2 80 00 00 00", writeInt(math.MinInt32), `-2147483648`, KindInt},
	{"int64 max", "d3 ff ff ff ff 7f ff ff ff", writeInt(math.MinInt32 - 1), `-2147483649`, KindInt},
	{"int64 min", "d3 80 00 00 00 00 00 00 00", writeInt(math.MinInt64), `-9223372036854775808`, KindInt},
	{"int64 positive", "d3 00 00 00 00 55 ec e6 f8", nil, `1441588984`, KindInt},

	{"float32", "ca 3d cc cc cd", writeFloat32(0.1), `0.1`, KindFloat32},
	{"float32 large", "ca 6c a3 c9 9e", nil, `1.5840562e+27`, KindFloat32},
	{"float32 small", "ca 33 d6 bf 95", nil, `1e-7`, KindFloat32},
	{"float32 NaN", "ca 7f c0 00 00", nil, `null`, KindFloat32},
	{"float32 infinity", "ca ff 80 00 00", writeFloat32(float32(math.Inf(-1))), `null`, KindFloat32},
	{"float32 -0", "ca 80 00 00 00", writeFloat32(float32(math.Copysign(0, -1))), `-0`, KindFloat32},
	{"float64", "cb 3f f8 00 00 00 00 00 00", writeFloat(1.5), `1.5`, KindFloat64},
	{"float64 0", "cb 00 00 00 00 00 00 00 00", writeFloat(0), `0`, KindFloat64},
	{"float64 -0", "cb 80 00 00 00 00 00 00 00", writeFloat(math.Copysign(0, -1)), `-0`, KindFloat64},
	{"float64 third", "cb 3f d5 55 55 55 55 55 55", writeFloat(1.0 / 3), `0.3333333333333333`, KindFloat64},
	{
		"float64 max", "cb ff ef ff ff ff ff ff ff", writeFloat(-math.MaxFloat64), `-1.7976931348623157e+308`,
		KindFloat64,
	},
	{"float64 min", "cb 00 00 00 00 00 00 00 01", writeFloat(5e-324), `5e-324`, KindFloat64},
	{"float64 1e21", "cb 44 4b 1a e4 d6 e2 ef 50", writeFloat(1e21), `1e+21`, KindFloat64},
	{"float64 1e-7", "cb 3e 7a d7 f2 9a bc af 48", writeFloat(1e-7), `1e-7`, KindFloat64},
	{"float64 NaN", "cb 7f f8 00 00 00 00 00 01", writeFloat(math.NaN()), `null`, KindFloat64},
	{"float64 infinity", "cb 7f f0 00 00 00 00 00 00", writeFloat(math.Inf(1)), `null`, KindFloat64},

	{"empty str", "a0", writeString(""), `""`, KindStr},
	{"str", "a1 6d", writeString("m"), `"m"`, KindStr},
	{
		"str of 31", "bf" + repeatHex("61", 31), writeString(strings.Repeat("a", 31)),
		`"` + strings.Repeat("a", 31) + `"`,
		KindStr,
	},
	{
		"str8 of 32", "d9 20" + repeatHex("61", 32), writeString(strings.Repeat("a", 32)),
		`"` + strings.Repeat("a", 32) + `"`, KindStr,
	},
	{
		"str8 of 255", "d9 ff" + repeatHex("61", 255), writeString(strings.Repeat("a", 255)),
		`"` + strings.Repeat("a", 255) + `"`, KindStr,
	},
	{
		"str16 of 256", "da 01 00" + repeatHex("61", 256), writeString(strings.Repeat("a", 256)),
		`"` + strings.Repeat("a", 256) + `"`, KindStr,
	},
	{
		"str32 of 65536", "db 00 01 00 00" + repeatHex("61", 65536), writeString(strings.Repeat("a", 65536)),
		`"` + strings.Repeat("a", 65536) + `"`, KindStr,
	},
	{"str8 short", "d9 01 61", nil, `"a"`, KindStr},
	{"str16 short", "da 00 01 61", nil, `"a"`, KindStr},
	{"str32 short", "db 00 00 00 01 61", nil, `"a"`, KindStr},
	{"str escaped", "a8 22 5c 0a 0d 09 08 0c 01", writeString("\"\\\n\r\t\b\f\x01"), `"\"\\\n\r\t\b\f\u0001"`, KindStr},
	{"str not escaped", "a4 3c 3e 26 7f", writeString("<>&\x7f"), "\"<>&\x7f\"", KindStr},
	{"str UTF-8", "a9 c3 bc e2 82 ac f0 9f 99 82", writeString("ü€🙂"), `"ü€🙂"`, KindStr},
	{"str line separators", "a6 e2 80 a8 e2 80 a9", writeString("\u2028\u2029"), `"\u2028\u2029"`, KindStr},
	{
		"str not UTF-8", "a6 61 ff c3 e2 82 62", writeString("a\xff\xc3\xe2\x82b"), "\"a\ufffd\ufffd\ufffd\ufffdb\"",
		KindStr,
	},
	{"str surrogate", "a3 ed a0 80", writeString("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"", KindStr},
	{"str overlong", "a2 c0 80", writeString("\xc0\x80"), "\"\ufffd\ufffd\"", KindStr},

	{"empty bin", "c4 00", writeBin(0), `""`, KindBin},
	{"bin8 of 255", "c4 ff" + repeatHex("62", 255), writeBin(255), `"` + strings.Repeat("b", 255) + `"`, KindBin},
	{"bin16 of 256", "c5 01 00" + repeatHex("62", 256), writeBin(256), `"` + strings.Repeat("b", 256) + `"`, KindBin},
	{
		"bin32 of 65536", "c6 00 01 00 00" + repeatHex("62", 65536), writeBin(65536),
		`"` + strings.Repeat("b", 65536) + `"`, KindBin,
	},
	{"bin16 short", "c5 00 01 62", nil, `"b"`, KindBin},
	{"bin32 short", "c6 00 00 00 01 62", nil, `"b"`, KindBin},
	{
		"bin not UTF-8", "c4 02 fe 22", func(b []byte) []byte {
			return AppendBin(b,
				[]byte{0xfe, '"'})
		}, "\"\ufffd\\\"\"",
		KindBin,
	},

	{"fixext1", "d4 05 00", writeExt(5, 1), `"ext:5:AA=="`, KindExt},
	{"fixext2", "d5 ff 00 00", writeExt(-1, 2), `"ext:-1:AAA="`, KindExt},
	{"fixext4", "d6 80 00 00 00 00", writeExt(-128, 4), `"ext:-128:AAAAAA=="`, KindExt},
	{
		"fixext8", "d7 00 55 ec e6 f8 07 5b cd 15",
		func(b []byte) []byte { return appendTestTime(b, 1441588984, 123456789) }, `"ext:0:Vezm+AdbzRU="`, KindExt,
	},
	{"fixext16", "d8 7f" + repeatHex("00", 16), writeExt(127, 16), `"ext:127:AAAAAAAAAAAAAAAAAAAAAA=="`, KindExt},
	{"ext8 empty", "c7 00 01", writeExt(1, 0), `"ext:1:"`, KindExt},
	{"ext8 of 8", "c7 08 00 55 ec e6 f8 07 5b cd 15", nil, `"ext:0:Vezm+AdbzRU="`, KindExt},
	{
		"ext8 of 255", "c7 ff 01" + repeatHex("00", 255), writeExt(1, 255), `"ext:1:` + strings.Repeat("A", 340) + `"`,
		KindExt,
	},
	{
		"ext16 of 258", "c8 01 02 01" + repeatHex("00", 258), writeExt(1, 258),
		`"ext:1:` + strings.Repeat("A", 344) + `"`,
		KindExt,
	},
	{
		"ext32 of 65538", "c9 00 01 00 02 01" + repeatHex("00", 65538), writeExt(1, 65538),
		`"ext:1:` + strings.Repeat("A", 87384) + `"`, KindExt,
	},

	{"empty array", "90", writeArray(0), `[]`, KindArray},
	{"array of 15", "9f" + repeatHex("01", 15), writeArray(15), `[1` + strings.Repeat(",1", 14) + `]`, KindArray},
	{
		"array16 of 16", "dc 00 10" + repeatHex("01", 16), writeArray(16), `[1` + strings.Repeat(",1", 15) + `]`,
		KindArray,
	},
	{
		"array32 of 65536", "dd 00 01 00 00" + repeatHex("01", 65536), writeArray(65536),
		`[1` + strings.Repeat(",1", 65535) + `]`, KindArray,
	},
	{"array16 empty", "dc 00 00", nil, `[]`, KindArray},
	{"array32 short", "dd 00 00 00 02 01 90", nil, `[1,[]]`, KindArray},
	{"nested arrays", "93 90 91 90 92 c0 91 c2", nil, `[[],[[]],[null,[false]]]`, KindArray},
	{"10 deep", repeatHex("91", 10) + "00", nil, strings.Repeat("[", 10) + "0" + strings.Repeat("]", 10), KindArray},
	{"128 deep", repeatHex("91", 127) + "90", nil, strings.Repeat("[", 128) + strings.Repeat("]", 128), KindArray},
	{"128 deep, maps", repeatHex("81a16b", 127) + "80", nil, strings.Repeat(`{"k":`, 127) + "{}" +
		strings.Repeat("}", 127), KindMap},

	{"empty map", "80", writeMap(0), `{}`, KindMap},
	{
		"map of 15", "8f" + repeatHex("a16bc3", 15), writeMap(15), `{"k":true` + strings.Repeat(`,"k":true`, 14) + `}`,
		KindMap,
	},
	{
		"map16 of 16", "de 00 10" + repeatHex("a16bc3", 16), writeMap(16),
		`{"k":true` + strings.Repeat(`,"k":true`, 15) + `}`, KindMap,
	},
	{
		"map32 of 65536", "df 00 01 00 00" + repeatHex("a16bc3", 65536), writeMap(65536),
		`{"k":true` + strings.Repeat(`,"k":true`, 65535) + `}`, KindMap,
	},
	{"map16 empty", "de 00 00", nil, `{}`, KindMap},
	{"map32 short", "df 00 00 00 01 a1 6b 80", nil, `{"k":{}}`, KindMap},
	{"repeated key", "82 a1 6b 01 a1 6b 02", nil, `{"k":1,"k":2}`, KindMap},
	{
		"str and bin as keys", "84 a1 61 01 d9 01 62 02 c4 01 63 03 c5 00 01 64 04", nil, `{"a":1,"b":2,"c":3,"d":4}`,
		KindMap,
	},
	{"key not UTF-8", "81 a2 ff 22 01", nil, "{\"\ufffd\\\"\":1}", KindMap},
	{"scalars as keys", "87 c0 01 c3 02 2a 03 ff 04 cb 3f f8 00 00 00 00 00 00 05 cb 7f f8 00 00 00 00 00 01 06 cf ff ff ff ff ff ff ff ff 07", nil, `{"null":1,"true":2,"42":3,"-1":4,"1.5":5,"null":6,"18446744073709551615":7}`, KindMap},
	{"ext as key", "81 d4 05 00 01", nil, `{"ext:5:AA==":1}`, KindMap},
	{"array as key", "81 92 01 a1 61 02", nil, `{"[1,\"a\"]":2}`, KindMap},
	{"map as key", "81 81 a1 61 a1 0a 02", nil, `{"{\"a\":\"\\n\"}":2}`, KindMap},
	{"map as key, twice", "81 81 81 a1 61 01 02 03", nil, `{"{\"{\\\"a\\\":1}\":2}":3}`, KindMap},
	{
		"array as key, three times", "81 81 81 91 a1 61 01 02 03", nil, `{"{\"{\\\"[\\\\\\\"a\\\\\\\"]\\\":1}\":2}":3}`,
		KindMap,
	},
	{
		"array as key, four times", "81 81 81 81 91 a1 61 01 02 03 04", nil,
		`{"{\"{\\\"{\\\\\\\"msgpack:kaFh\\\\\\\":1}\\\":2}\":3}":4}`, KindMap,
	},

	{
		"Forward entry", "92 d7 00 55 ec e6 f8 07 5b cd 15 81 a1 6d a1 31", nil, `["ext:0:Vezm+AdbzRU=",{"m":"1"}]`,
		KindArray,
	},
	{
		"Forward entry with metadata", "92 92 d7 00 55 ec e6 f8 07 5b cd 15 80 81 a1 6d a1 31", nil,
		`[["ext:0:Vezm+AdbzRU=",{}],{"m":"1"}]`, KindArray,
	},
}

// A badVector is what is no value.
type badVector struct {
	name string
	wire string
	err  error
	n    int // where Scan stops
}

func (v badVector) bytes(t testing.TB) []byte { return vector{name: v.name, wire: v.wire}.bytes(t) }

var badVectors = []badVector{
	{"invalid", "c1", ErrInvalid, 1},
	{"invalid in array", "93 01 c1 02", ErrInvalid, 3},
	{"invalid as key", "81 c1 02", ErrInvalid, 2},
	{"invalid after a long str", "92 d9 20" + repeatHex("61", 32) + "c1", ErrInvalid, 36},
	{"129 deep", repeatHex("91", 129) + "00", ErrDepth, 129},
	{"129 deep, the last one empty", repeatHex("91", 128) + "90", ErrDepth, 129},
	{"129 deep, maps", repeatHex("81c0", 128) + "80", ErrDepth, 257},
	{"129 deep, in keys", repeatHex("81", 129) + "00", ErrDepth, 129},
	{"100,000 deep", repeatHex("91", 100_000), ErrDepth, 129},
	{"24,000 arrays of 65,535", repeatHex("dcffff", 24_000), ErrDepth, 3 * 129},
	{"array32 of all", "dd ff ff ff ff", ErrCount, 5},
	{"map32 of all", "df ff ff ff ff", ErrCount, 5},
	{"map32 of one too many", "df 80 00 00 00", ErrCount, 5},
	{"str32 of all", "db ff ff ff ff", ErrLength, 5},
	{"bin32 of all", "c6 ff ff ff ff", ErrLength, 5},
	{"ext32 of all", "c9 ff ff ff ff 00", ErrLength, 5},
	{"huge array in a message", "92 a1 74 dd ff ff ff ff", ErrCount, 8},
}
