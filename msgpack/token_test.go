// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"
)

func TestReadToken(t *testing.T) {
	for _, v := range vectors {
		b := v.bytes(t)
		tok, n, err := ReadToken(b)
		if err != nil || tok.Kind != v.kind {
			t.Errorf("%s: %v, %v, want %v", v.name, tok.Kind, err, v.kind)
			continue
		}
		for short := range n {
			if _, m, err := ReadToken(b[:short]); !errors.Is(err, ErrShort) || m != 0 {
				t.Errorf("%s: %d bytes of %d: n %d, %v", v.name, short, n, m, err)
			}
		}
		p, kind, m, err := ReadBytes(b)
		switch tok.Kind {
		case KindStr, KindBin:
			if err != nil || kind != tok.Kind || m != len(b) || !bytes.Equal(p, b[n:]) || n+tok.Len != len(b) {
				t.Errorf("%s: ReadBytes: %q, %v, %d, %v", v.name, p, kind, m, err)
			}
			if len(p) > 0 {
				if _, _, _, err := ReadBytes(b[:len(b)-1]); !errors.Is(err, ErrShort) {
					t.Errorf("%s: ReadBytes of one byte less: %v", v.name, err)
				}
			}
			if cap(p) != len(p) {
				t.Errorf("%s: appending to the payload would overwrite what follows", v.name)
			}
		default:
			if !errors.Is(err, ErrKind) {
				t.Errorf("%s: ReadBytes: %v", v.name, err)
			}
		}
		switch tok.Kind {
		case KindExt:
			if n+tok.Len != len(b) || tok.Ext != int8(b[n-1]) {
				t.Errorf("%s: ext of type %d, %d bytes", v.name, tok.Ext, tok.Len)
			}
		case KindBool:
			if tok.Bool() != (v.json == "true") {
				t.Errorf("%s: %v", v.name, tok.Bool())
			}
		case KindInt, KindUint:
			if n != len(b) {
				t.Errorf("%s: %d bytes of %d", v.name, n, len(b))
			}
			i, isInt := tok.Int()
			u, isUint := tok.Uint()
			var wantI int64
			var wantU uint64
			if err := json.Unmarshal([]byte(v.json), &wantI); isInt != (err == nil) || isInt && i != wantI {
				t.Errorf("%s: int %d, %v", v.name, i, isInt)
			}
			if err := json.Unmarshal([]byte(v.json), &wantU); isUint != (err == nil) || isUint && u != wantU {
				t.Errorf("%s: uint %d, %v", v.name, u, isUint)
			}
			var f float64
			if err := json.Unmarshal([]byte(v.json), &f); err != nil || tok.Float() != f {
				t.Errorf("%s: float %v, want %v", v.name, tok.Float(), f)
			}
		case KindFloat32, KindFloat64:
			if _, ok := tok.Int(); ok {
				t.Errorf("%s is an int", v.name)
			}
			if _, ok := tok.Uint(); ok {
				t.Errorf("%s is a uint", v.name)
			}
			var f float64
			if err := json.Unmarshal([]byte(v.json), &f); err != nil {
				t.Error(err)
			}
			if tok.Kind == KindFloat32 {
				f = float64(float32(f))
			}
			if v.json != "null" && (tok.Float() != f || math.Signbit(tok.Float()) != math.Signbit(f)) {
				t.Errorf("%s: float %v, want %v", v.name, tok.Float(), f)
			}
		}
	}
}

func TestReadTokenBad(t *testing.T) {
	for _, v := range badVectors {
		b := v.bytes(t)
		for {
			tok, n, err := ReadToken(b)
			if err != nil {
				want := v.err
				if errors.Is(want, ErrDepth) { // tokens have none
					want = ErrShort
				}
				if !errors.Is(err, want) || n != 0 {
					t.Errorf("%s: %d, %v, want %v", v.name, n, err, want)
				}
				break
			}
			b = b[n:]
			if tok.Kind == KindStr {
				b = b[tok.Len:]
			}
		}
	}
}

// What is asked of a token of another kind has a plain answer.
func TestTokenOtherKind(t *testing.T) {
	str, _, err := ReadToken([]byte{0xa1, 'a'})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := str.Int(); ok {
		t.Error("a str is an int")
	}
	if _, ok := str.Uint(); ok {
		t.Error("a str is a uint")
	}
	if str.Float() != 0 || str.Bool() {
		t.Error("a str is a float or a bool")
	}
	if p, kind, n, err := ReadBytes(nil); p != nil || kind != 0 || n != 0 || !errors.Is(err, ErrShort) {
		t.Errorf("no bytes: %q, %v, %d, %v", p, kind, n, err)
	}
}

func TestKindString(t *testing.T) {
	for k, want := range map[Kind]string{
		0: "no value", KindNil: "nil", KindUint: "uint", KindFloat64: "float64", KindMap: "map",
		77: "Kind(77)",
	} {
		if k.String() != want {
			t.Errorf("%d: %s, want %s", uint8(k), k, want)
		}
	}
}
