// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"encoding/base64"
	"fmt"
	"math/bits"
)

// maxKeys bounds arrays and maps that stand in keys of maps that stand in keys: each level escapes
// the quotes and backslashes of the one below once more and so doubles them.
const maxKeys = 3

// AppendJSONPairs appends the map at the start of src as AppendJSON does, but without the braces:
// its members with commas between them, nothing for an empty map. So the caller can begin the
// object with members of its own, the names of which are reserved: a key of the map that equals one
// of them gets as many underscores at its end as make it neither reserved nor equal to another key
// of the map. Reserved names are few and plain: ASCII without quotes and backslashes.
//
// The errors are those of AppendJSON, and ErrKind, wrapped, if src does not begin with a map.
func AppendJSONPairs(dst, src []byte, reserved []string, ext ExtJSON) (out []byte, n int, err error) {
	var pairs, i int
	if len(src) > 0 && src[0]&0xf0 == codeFixMap {
		pairs, i = int(src[0]&0x0f), 1
	} else {
		var k Token
		if k, i, err = ReadToken(src); err != nil {
			return dst, 0, err
		}
		if k.Kind != KindMap {
			return dst, 0, fmt.Errorf("%w: %v, not map", ErrKind, k.Kind)
		}
		pairs = k.Len
	}
	var names uint64
	for _, name := range reserved {
		first := byte('"') // what stands there of a key without a byte
		if name != "" {
			first = name[0]
		}
		names |= nameBit(len(name), first)
	}
	t := transcoder{buf: dst[:cap(dst)], src: src, ext: ext, reserved: reserved}
	j := t.appended(dst)
	if i, j, err = t.members(i, j, pairs, 1, names); err != nil {
		return dst, 0, err
	}
	if pairs > 0 {
		j-- // the last comma
	}
	return t.buf[:j], i, nil
}

// nameBit is the bit that stands for names of a length that begin with a byte, and for some others.
func nameBit(n int, first byte) uint64 { return 1 << (uint(n+int(first)) & 63) }

// key writes the value at src[i:] as a key: a string in any case.
func (t *transcoder) key(i, j, depth int) (_, _ int, err error) {
	if len(t.buf)-j < room {
		t.grow(j, room)
	}
	k, _, err := ReadToken(t.src[i:])
	if err != nil {
		return i, j, err
	}
	start := j
	if k.Kind != KindArray && k.Kind != KindMap {
		i, j, err = t.value(i, j, depth)
	} else if t.keys < maxKeys {
		t.keys++
		i, j, err = t.value(i, j, depth)
		t.keys--
	} else {
		return t.opaqueKey(i, j, depth)
	}
	if err != nil || t.buf[start] == '"' {
		return i, j, err
	}
	// The JSON text becomes a string behind itself, and then takes its own place.
	out := AppendJSONString(t.buf[:j], t.buf[start:j])
	n := copy(out[start:], out[j:])
	return i, t.appended(out[:start+n]), nil
}

// opaqueKey writes the array or map at src[i:] as it is, in base64.
func (t *transcoder) opaqueKey(i, j, depth int) (int, int, error) {
	if depth >= DefaultDepth {
		return i, j, errDepth()
	}
	n, err := Limits{Depth: DefaultDepth - depth}.Skip(t.src[i:])
	if err != nil {
		return i, j, err
	}
	out := append(t.buf[:j], `"msgpack:`...)
	out = base64.StdEncoding.AppendEncode(out, t.src[i:i+n])
	return i + n, t.appended(append(out, '"')), nil
}

// rename gives the key that stands, in quotes, at buf[start:j] its underscores, if it is reserved.
// The n pairs of its map are at src[first:].
func (t *transcoder) rename(start, j, first, n int) int {
	for r, name := range t.reserved {
		if string(t.buf[start+1:j-1]) != name {
			continue
		}
		suffix := t.suffix(r)
		if *suffix == 0 {
			*suffix = t.underscores(name, t.src[first:], n)
		}
		out := t.buf[:j-1]
		for range *suffix {
			out = append(out, '_')
		}
		return t.appended(append(out, '"'))
	}
	return j
}

// suffix is how many underscores the reserved name r gets; 0: not yet known. It is found once for
// all keys of that name, so that they stay the same key, and so that hostile repetition costs
// nothing.
func (t *transcoder) suffix(r int) *int {
	if r < len(t.few) {
		return &t.few[r]
	}
	if t.many == nil {
		t.many = make([]int, len(t.reserved))
	}
	return &t.many[r]
}

// underscores returns how many of them name needs to be neither reserved nor a key of the map whose
// n pairs are at b.
func (t *transcoder) underscores(name string, b []byte, n int) int {
	var taken uint64 // bit k: name with k underscores. Those with more than 63 only count for longest.
	longest := 0
	take := func(k int, same bool) {
		if same && k > 0 {
			taken |= 1 << k
			longest = max(longest, k)
		}
	}
	for r, other := range t.reserved {
		k, same := excess(other, name)
		take(k, same)
		take(k+*t.suffix(r), same)
	}
	for range n {
		k, err := Skip(b)
		if err != nil {
			break // where members will find the error, too
		}
		if h, i, _ := ReadToken(b); h.Kind == KindStr || h.Kind == KindBin {
			take(excess(b[i:k], name))
		}
		v, err := Skip(b[k:])
		if err != nil {
			break
		}
		b = b[k+v:]
	}
	if free := bits.TrailingZeros64(^(taken | 1)); free < 64 {
		return free
	}
	return longest + 1
}

// excess tells whether s and name are the same but for underscores at their ends, and how many of
// them s has more.
func excess[S string | []byte](s S, name string) (k int, same bool) {
	n := min(len(s), len(name))
	if string(s[:n]) != name[:n] {
		return 0, false
	}
	return len(s) - len(name), onlyUnderscores(s[n:]) && onlyUnderscores(name[n:])
}

func onlyUnderscores[S string | []byte](s S) bool {
	for i := range len(s) {
		if s[i] != '_' {
			return false
		}
	}
	return true
}
