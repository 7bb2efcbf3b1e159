// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"log/slog"
	"testing"
)

// Whatever the type, the value and the room: one valid MessagePack value, the same as
// encoding/json's.
func FuzzMadeUp(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, seed uint64, depth uint8) {
		v := newMaker(seed).value(int(depth % 5)).Interface()
		sameAsJSON(t, "made up", v)
	})
}

// What a json.Marshaler returns may be anything.
func FuzzMarshaler(f *testing.F) {
	for _, s := range []string{"", "null", `{"a":[1,2.5,"x"]}`, `{"a":`, "1 2", `"\ud800"`, "-0", "1e999", "[[[[[["} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := AppendValue(nil, []any{jsonText(s), json.Number(s), json.RawMessage(s), s, map[string]any{s: []byte(s)}})
		asJSON(t, b)
		b, at := BeginMap(nil, 1)
		b, n := AppendAttrs(b, []slog.Attr{
			slog.String(s, s), slog.Any(s, jsonText(s)),
			slog.Group(s, slog.String("", "")),
		})
		asJSON(t, EndMap(b, at, n))
	})
}
