// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// streamed is what WriteJSONPairs writes, with a window of so many bytes.
func streamed(src []byte, window int, reserved []string) ([]byte, error) {
	var out bytes.Buffer
	w := bufio.NewWriterSize(&out, 16)
	x := jsonWriter{w: w, window: window, t: transcoder{reserved: reserved}, open: func() (io.ReadCloser, error) {
		return io.NopCloser(iotest.HalfReader(bytes.NewReader(src))), nil
	}}
	err := errors.Join(x.pairs(), w.Flush())
	return out.Bytes(), err
}

// hasLongKey says whether a map anywhere in a value has an array or map as key that is longer than
// n.
func hasLongKey(b []byte, n int) (long bool) {
	t, head, err := ReadToken(b)
	if err != nil || t.Kind != KindArray && t.Kind != KindMap {
		return false
	}
	b = b[head:]
	for i := range t.Len * (1 + int(t.Kind-KindArray)) {
		k, err := Skip(b)
		if err != nil {
			return false
		}
		inner, _, _ := ReadToken(b)
		if t.Kind == KindMap && i%2 == 0 && (inner.Kind == KindArray || inner.Kind == KindMap) && k > n ||
			hasLongKey(b[:k], n) {
			return true
		}
		b = b[k:]
	}
	return false
}

var reservedNames = []string{"time", "tag"}

// checkStream compares both ways to write a map.
func checkStream(t *testing.T, src []byte, window int) {
	t.Helper()
	want, n, err := AppendJSONPairs(nil, src, reservedNames, nil)
	if err != nil {
		if errors.Is(err, ErrDepth) {
			return // Skip and what fits into the window say so elsewhere
		}
		if _, err := streamed(src, window, reservedNames); err == nil {
			t.Fatalf("%x: no error", src)
		}
		return
	}
	got, err := streamed(src[:n], window, reservedNames)
	if err != nil {
		t.Fatalf("%x: %v", src, err)
	}
	if hasLongKey(src[:n], window) {
		if !json.Valid([]byte("{" + string(got) + "}")) {
			t.Fatalf("%x: %s", src, got)
		}
		return
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%x:\n%s, want\n%s", src, got, want)
	}
}

func TestWriteJSONPairs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	texts := []string{"plain ", "\x01\"\\\n", "äö", "€\u2028", "\xff\xc3", "😀", "\xed\xa0\x80"}
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(texts[r.IntN(len(texts))])
		}
		return b.String()
	}
	var value func(b []byte, depth int) []byte
	value = func(b []byte, depth int) []byte {
		switch k := r.IntN(9); {
		case k == 0 && depth < 3:
			b = AppendArrayHeader(b, 8)
			for range 8 {
				b = value(b, depth+1)
			}
			return b
		case k <= 2 && depth < 3:
			b = AppendMapHeader(b, 5)
			for range 5 {
				b = value(value(b, depth+2), depth+1)
			}
			return b
		case k == 3:
			return AppendExt(b, int8(r.IntN(200)-100), []byte(text(r.IntN(300))))
		case k == 4:
			return AppendBin(b, []byte(text(r.IntN(300))))
		case k == 5:
			return AppendInt(b, r.Int64())
		case k == 6:
			return AppendFloat64(b, r.Float64())
		case k == 7:
			return append(b, codeNil)
		}
		return AppendString(b, text(r.IntN(300)))
	}
	keys := []string{"time", "tag", "time_", "tag___", "time" + strings.Repeat("_", 70), "other"}
	for range 8 {
		n := 1 + r.IntN(20)
		b := AppendMapHeader(nil, n)
		for range n {
			if r.IntN(3) == 0 {
				b = value(b, 3)
			} else {
				b = AppendString(b, keys[r.IntN(len(keys))])
			}
			b = value(b, 0)
		}
		checkStream(t, b, 100)
		checkStream(t, b, streamWindow)
	}
	big := AppendString(AppendString(AppendMapHeader(nil, 1), "k"), text(5*streamWindow))
	checkStream(t, big, streamWindow)
	for range 100 { // cut short
		checkStream(t, big[:r.IntN(len(big))], streamWindow)
	}
}

func TestWriteJSONPairsLongKey(t *testing.T) {
	key := AppendString(AppendArrayHeader(nil, 1), strings.Repeat("k", 200))
	got, err := streamed(append(append([]byte{0x81}, key...), 1), 100, nil)
	var m map[string]int
	if err != nil || json.Unmarshal([]byte("{"+string(got)+"}"), &m) != nil ||
		!strings.HasPrefix(string(got), `"msgpack:kdnI`) {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := streamed([]byte{0x93}, 100, nil); !errors.Is(err, ErrKind) {
		t.Errorf("an array: %v", err)
	}
}

// FuzzWriteJSONPairs: a map is the same in pieces as it is whole.
func FuzzWriteJSONPairs(f *testing.F) {
	f.Add(AppendString(AppendString(AppendMapHeader(nil, 1), "time"), strings.Repeat("€\x01", 100)), uint8(40))
	f.Add([]byte{0x81, 0xa4, 't', 'i', 'm', 'e', 0x91, 0xc0}, uint8(0))
	for _, v := range vectors {
		f.Add(v.bytes(f), uint8(3))
	}
	f.Fuzz(func(t *testing.T, src []byte, window uint8) {
		if len(src) > 10000 {
			return
		}
		checkStream(t, src, 32+int(window))
	})
}
