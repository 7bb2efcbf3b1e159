// SPDX-License-Identifier: Apache-2.0

package msgpack

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/bits"
)

// maxKeys bounds arrays and maps that stand in keys of maps that stand in keys: each level escapes the quotes and backslashes of the one
// below once more and so doubles them.
const maxKeys = 3

// AppendJSONPairs appends the map at the start of src as AppendJSON does, but without the braces: its members with commas between them,
// nothing for an empty map. So the caller can begin the object with members of its own, the names of which are reserved: a key
// of the map that equals one of them gets as many underscores at its end as make it neither reserved nor equal to another key of the
// map. Reserved names are few and plain: ASCII without quotes and backslashes.
//
// The errors are those of AppendJSON, and ErrKind, wrapped, if src does not begin with a map.
func AppendJSONPairs(dst, src []byte, reserved []string, ext ExtJSON) (out []byte, n int, err error) {
	k, i, err := ReadToken(src)
	if err != nil {
		return dst, 0, err
	}
	if k.Kind != Map {
		return dst, 0, fmt.Errorf("%w: %v, not map", ErrKind, k.Kind)
	}
	var lengths uint64
	for _, name := range reserved {
		lengths |= 1 << min(len(name), 63)
	}
	t := transcoder{buf: dst[:cap(dst)], src: src, ext: ext, reserved: reserved}
	j := t.appended(dst)
	if i, j, err = t.members(i, j, k.Len, 1, lengths); err != nil {
		return dst, 0, err
	}
	if k.Len > 0 {
		j-- // the last comma
	}
	return t.buf[:j], i, nil
}

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
	if k.Kind != Array && k.Kind != Map {
		i, j, err = t.value(i, j, depth)
	} else if t.keys < maxKeys {
		t.keys++
		i, j, err = t.value(i, j, depth)
		t.keys--
	} else {
		return t.opaqueKey(i, j)
	}
	if err != nil || t.buf[start] == '"' {
		return i, j, err
	}
	// The JSON text becomes a string behind itself, and then takes its own place.
	out := AppendJSONString(t.buf[:j], t.buf[start:j])
	n := copy(out[start:], out[j:])
	return i, t.appended(out[:start+n]), nil
}

// opaqueKey writes the value at src[i:] as it is, in base64.
func (t *transcoder) opaqueKey(i, j int) (int, int, error) {
	n, err := Skip(t.src[i:])
	if err != nil {
		return i, j, err
	}
	out := append(t.buf[:j], `"msgpack:`...)
	out = base64.StdEncoding.AppendEncode(out, t.src[i:i+n])
	return i + n, t.appended(append(out, '"')), nil
}

// rename gives the key that stands, in quotes, at buf[start:j] its underscores, if it is reserved. The n pairs of its map are at
// src[first:].
func (t *transcoder) rename(start, j, first, n int) int {
	for r, name := range t.reserved {
		if string(t.buf[start+1:j-1]) != name {
			continue
		}
		under := t.suffix[r%len(t.suffix)]
		if under == 0 || r >= len(t.suffix) {
			under = t.underscores(name, t.src[first:], n)
			t.suffix[r%len(t.suffix)] = under
		}
		out := t.buf[:j-1]
		for range under {
			out = append(out, '_')
		}
		return t.appended(append(out, '"'))
	}
	return j
}

// underscores returns how many of them name needs to be neither reserved nor a key of the map whose n pairs are at b.
func (t *transcoder) underscores(name string, b []byte, n int) int {
	var taken uint64 // bit k: name with k underscores; those with more only count for longest
	longest := 0
	take := func(key []byte) {
		if len(key) < len(name) || string(key[:len(name)]) != name {
			return
		}
		k := len(key) - len(name)
		if bytes.Count(key[len(name):], []byte{'_'}) == k {
			taken |= 1 << k
			longest = max(longest, k)
		}
	}
	for _, r := range t.reserved {
		take([]byte(r))
	}
	for range n {
		if key, _, _, err := ReadBytes(b); err == nil {
			take(key)
		}
		k, err := Skip(b)
		if err != nil {
			break // where members will find the error, too
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
