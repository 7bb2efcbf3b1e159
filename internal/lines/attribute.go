// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"encoding/base64"
	"strconv"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// appendPairs appends the attributes of a record, those left out that are parts of the line, each
// with a space behind it. n is what the pairs take; below 0 if they cannot be read to their end.
func (t *Text) appendPairs(dst []byte, p *parts) (_ []byte, n int) {
	rest := p.pairs[p.leadBytes:]
	t.prefix = t.prefix[:0]
	for i := p.lead; i < p.n; i++ {
		k, err := msgpack.Skip(rest)
		if err != nil {
			return appendRest(dst, rest), -1
		}
		if i == p.messageAt { // of a record that is no leveled call's
			v, err := msgpack.Skip(rest[k:])
			if err != nil {
				return appendRest(dst, rest), -1
			}
			rest = rest[k+v:]
			continue
		}
		if dst, n = t.appendPair(dst, rest, k, 0); n == 0 {
			return appendRest(dst, rest), -1
		}
		rest = rest[n:]
	}
	return dst, len(p.pairs) - len(rest)
}

// appendRest appends what cannot be read.
func appendRest(dst, rest []byte) []byte {
	dst = append(dst, "undecodable="...)
	dst = base64.StdEncoding.AppendEncode(dst, rest)
	return append(dst, ' ')
}

// maxNest is how deep groups are dotted; what is deeper is written as a list is.
const maxNest = 16

// appendPair appends the pair at the start of b, whose key takes k bytes. n is what the pair takes,
// 0 if it cannot be read; then nothing of it is appended.
func (t *Text) appendPair(dst, b []byte, k, depth int) (_ []byte, n int) {
	start, prefix := len(dst), len(t.prefix)
	token, head, err := msgpack.ReadToken(b[k:])
	if err != nil {
		return dst, 0
	}
	if token.Kind == msgpack.KindMap && token.Len > 0 && depth < maxNest {
		t.prefix = append(appendKey(t.prefix, b[:k]), '.')
		at := k + head
		for range token.Len {
			k, err := msgpack.Skip(b[at:])
			if err == nil {
				dst, n = t.appendPair(dst, b[at:], k, depth+1)
			}
			if n == 0 || err != nil {
				t.prefix = t.prefix[:prefix]
				return dst[:start], 0
			}
			at += n
		}
		t.prefix = t.prefix[:prefix]
		return dst, at
	}
	if token.Kind == msgpack.KindArray || token.Kind == msgpack.KindMap {
		if _, err := msgpack.Skip(b[k:]); err != nil { // cut off, or deeper than is read
			return dst, 0
		}
	}
	if t.color {
		dst = append(dst, cyan...)
	}
	dst = append(dst, t.prefix...)
	dst = appendKey(dst, b[:k])
	dst = append(dst, '=')
	if t.color {
		dst = append(dst, plain...)
	}
	v := 0
	if dst, v = appendValue(dst, b[k:], false); v == 0 {
		return dst[:start], 0
	}
	return append(dst, ' '), k + v
}

// appendKey appends a key, which is a value of any kind.
func appendKey(dst, key []byte) []byte {
	start := len(dst)
	dst, n := appendValue(dst, key, false)
	if n == 0 {
		return append(dst[:start], '?')
	}
	return dst
}

// appendValue appends the value at the start of b. n is what it takes, 0 if it cannot be read.
func appendValue(dst, b []byte, inside bool) (_ []byte, n int) {
	token, head, err := msgpack.ReadToken(b)
	if err != nil {
		return dst, 0
	}
	switch token.Kind {
	case msgpack.KindNil:
		return append(dst, "nil"...), head
	case msgpack.KindBool:
		return strconv.AppendBool(dst, token.Bool()), head
	case msgpack.KindInt:
		i, _ := token.Int()
		return strconv.AppendInt(dst, i, 10), head
	case msgpack.KindUint:
		u, _ := token.Uint()
		return strconv.AppendUint(dst, u, 10), head
	case msgpack.KindFloat32:
		return strconv.AppendFloat(dst, token.Float(), 'g', -1, 32), head
	case msgpack.KindFloat64:
		return strconv.AppendFloat(dst, token.Float(), 'g', -1, 64), head
	case msgpack.KindStr, msgpack.KindBin:
		if len(b)-head < token.Len {
			return dst, 0
		}
		return appendWord(dst, b[head:head+token.Len], inside), head + token.Len
	case msgpack.KindExt:
		if len(b)-head < token.Len {
			return dst, 0
		}
		at := len(dst)
		dst = forward.AppendExtJSON(dst, token.Ext, b[head:head+token.Len])
		return append(dst[:at], dst[at+1:len(dst)-1]...), head + token.Len // without the quotes
	case msgpack.KindArray, msgpack.KindMap:
		return appendList(dst, b, token, head)
	}
	return dst, 0
}

// appendList appends [1,2] or {a=1,b=2}. The caller knows that it is whole and not too deep.
func appendList(dst, b []byte, token msgpack.Token, at int) (_ []byte, n int) {
	brackets := "[]"
	if token.Kind == msgpack.KindMap {
		brackets = "{}"
	}
	dst = append(dst, brackets[0])
	for i := range token.Len {
		if i > 0 {
			dst = append(dst, ',')
		}
		if token.Kind == msgpack.KindMap {
			if dst, n = appendValue(dst, b[at:], true); n == 0 {
				return dst, 0
			}
			dst = append(dst, '=')
			at += n
		}
		if dst, n = appendValue(dst, b[at:], true); n == 0 {
			return dst, 0
		}
		at += n
	}
	return append(dst, brackets[1]), at
}
