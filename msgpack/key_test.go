// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"errors"
	"strings"
	"testing"
)

func TestAppendJSONPairs(t *testing.T) {
	pairs := func(keys ...string) []byte {
		b := AppendMapHeader(nil, len(keys))
		for i, k := range keys {
			b = AppendInt(AppendString(b, k), int64(i))
		}
		return b
	}
	var many []string
	for i := range 64 {
		many = append(many, "time"+strings.Repeat("_", i))
	}
	manyJSON := `"time` + strings.Repeat("_", 64) + `":0`
	for i, k := range many[1:] {
		manyJSON += `,"` + k + `":` + string(AppendJSONInt(i+1))
	}
	envelope := []string{"time", "tag"}
	for _, tt := range []struct {
		name     string
		b        []byte
		reserved []string
		want     string
	}{
		{"empty", pairs(), envelope, ``},
		{"no collision", pairs("a", "b"), envelope, `"a":0,"b":1`},
		{"nothing reserved", pairs("time", "tag"), nil, `"time":0,"tag":1`},
		{"collision", pairs("time", "a"), envelope, `"time_":0,"a":1`},
		{"both", pairs("time", "tag"), envelope, `"time_":0,"tag_":1`},
		{"equal length", pairs("kind", "key"), envelope, `"kind":0,"key":1`},
		{"prefix", pairs("times", "ta", ""), envelope, `"times":0,"ta":1,"":2`},
		{"the new name is a key", pairs("time", "time_"), envelope, `"time__":0,"time_":1`},
		{"the new name is a key before", pairs("time_", "time"), envelope, `"time_":0,"time__":1`},
		{"a gap", pairs("time", "time__", "time_x"), envelope, `"time_":0,"time__":1,"time_x":2`},
		{"the new name is reserved", pairs("time"), []string{"time_", "time"}, `"time__":0`},
		{"all in the way", pairs("time", "time_"), []string{"time", "time_", "time__"}, `"time___":0,"time____":1`},
		{"repeated", pairs("time", "time", "time"), envelope, `"time_":0,"time_":1,"time_":2`},
		{"64 names", pairs(many...), envelope, manyJSON},
		{"bin key", AppendInt(AppendBin(AppendMapHeader(nil, 1), []byte("time")), 0), envelope, `"time_":0`},
		{
			"nested map", append(AppendString(AppendMapHeader(nil, 1), "m"), pairs("time")...), envelope,
			`"m":{"time":0}`,
		},
		{"nil key", append(AppendNil(AppendMapHeader(nil, 1)), 0), []string{"null"}, `"null_":0`},
		{"many reserved", pairs("j", "j_", "a"), strings.Split("a b c d e f g h i j", " "), `"j__":0,"j_":1,"a_":2`},
		{
			"long name", pairs(strings.Repeat("x", 70), strings.Repeat("y", 70)),
			[]string{strings.Repeat("x", 70)},
			`"` + strings.Repeat("x", 70) + `_":0,"` + strings.Repeat("y", 70) + `":1`,
		},
	} {
		for spare := range 60 {
			dst := append(make([]byte, 0, 1+spare), '{')
			out, n, err := AppendJSONPairs(dst, tt.b, tt.reserved, nil)
			if err != nil || n != len(tt.b) || string(out) != "{"+tt.want {
				t.Errorf("%s: %s, %d, %v, want %s", tt.name, out, n, err, tt.want)
				break
			}
		}
	}
}

func AppendJSONInt(v int) []byte {
	out, _, _ := AppendJSON(nil, AppendInt(nil, int64(v)), nil)
	return out
}

func TestAppendJSONPairsBad(t *testing.T) {
	for _, tt := range []struct {
		b   []byte
		err error
	}{
		{nil, ErrShort},
		{[]byte{0xc0}, ErrKind},
		{[]byte{0x92, 1, 2}, ErrKind},
		{[]byte{0xc1}, ErrInvalid},
		{[]byte{0x81, 0xc1}, ErrInvalid},
		{[]byte{0x82, 0xa1, 'a', 0}, ErrShort},
		{[]byte{0xdf, 0x7f, 0xff, 0xff, 0xff, 0xa4, 't', 'i', 'm', 'e', 0}, ErrShort},
		{[]byte{0xdf, 0x7f, 0xff, 0xff, 0xff, 0xa4, 't', 'i', 'm', 'e', 0xc1}, ErrInvalid},
	} {
		out, n, err := AppendJSONPairs([]byte("before"), tt.b, []string{"time"}, nil)
		if !errors.Is(err, tt.err) || n != 0 || string(out) != "before" {
			t.Errorf("%x: %q, %d, %v, want %v", tt.b, out, n, err, tt.err)
		}
	}
}
