// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"log/slog"
	"slices"

	"github.com/spillwaylog/spillway/msgpack"
)

// Keys that come twice in one map. JSON and MessagePack allow it, and readers disagree about which
// one counts. These functions change encoded pairs in place; pairs that cannot be read stay.

// keyed is where a key and its value stand in encoded pairs.
type keyed struct {
	key      []byte // of a text; nil for a key that is none
	at, end  int    // the pair
	value    int    // where the value begins
	shadowed bool   // another pair with its key counts
}

// appendPairs appends the pairs that stand in b. It returns false if these cannot be read.
func appendPairs(all []keyed, b []byte) ([]keyed, bool) {
	for at := 0; at < len(b); {
		p := keyed{at: at}
		key, n, err := msgpack.ReadToken(b[at:])
		switch {
		case err != nil:
			return all, false
		case key.Kind == msgpack.KindStr && key.Len <= len(b)-at-n:
			p.key = b[at+n : at+n+key.Len]
			p.value = at + n + key.Len
		default:
			if n, err = msgpack.Skip(b[at:]); err != nil {
				return all, false
			}
			p.value = at + n
		}
		n, err = msgpack.Skip(b[p.value:])
		if err != nil {
			return all, false
		}
		p.end = p.value + n
		all = append(all, p)
		at = p.end
	}
	return all, true
}

// DropShadowed removes, of the encoded pairs b, those that begin in b[from:to] and have the key of
// a pair that begins elsewhere. It returns what is left, and how many pairs are gone.
func DropShadowed(b []byte, from, to int) (out []byte, dropped int) {
	var room [32]keyed
	all, ok := appendPairs(room[:0], b)
	if !ok {
		return b, 0
	}
	inside := func(p *keyed) bool { return p.at >= from && p.at < to }
	for i := range all {
		p := &all[i]
		if !inside(p) || p.key == nil {
			continue
		}
		for j := range all {
			if q := &all[j]; !inside(q) && q.key != nil && bytes.Equal(p.key, q.key) {
				p.shadowed = true
				break
			}
		}
	}
	return dropPairs(b, all)
}

// LastWins removes, of the encoded pairs b, each whose key comes again, and does the same for all
// maps in their values. It returns what is left, and how many of the pairs themselves are gone.
func LastWins(b []byte) (out []byte, dropped int) {
	var room [32]keyed
	all, ok := appendPairs(room[:0], b)
	if !ok {
		return b, 0
	}
	markRepeated(all)
	for i := range all {
		if k := b[all[i].value]; !all[i].shadowed && (isMap(k) || isArray(k)) {
			return lastWinsInside(b, all)
		}
	}
	return dropPairs(b, all)
}

// markRepeated marks the pairs whose key comes again.
func markRepeated(all []keyed) {
	const few = 16
	if len(all) <= few {
		for i := range all {
			for j := i + 1; j < len(all) && !all[i].shadowed; j++ {
				all[i].shadowed = all[i].key != nil && all[j].key != nil && bytes.Equal(all[i].key, all[j].key)
			}
		}
		return
	}
	last := make(map[string]int, len(all))
	for i := range all {
		if all[i].key != nil {
			last[string(all[i].key)] = i
		}
	}
	for i := range all {
		all[i].shadowed = all[i].key != nil && last[string(all[i].key)] != i
	}
}

// dropPairs moves those that stay together.
func dropPairs(b []byte, all []keyed) (out []byte, dropped int) {
	to := 0
	for i := range all {
		p := &all[i]
		if p.shadowed {
			dropped++
			continue
		}
		to += copy(b[to:], b[p.at:p.end])
	}
	return b[:to], dropped
}

// lastWinsInside is dropPairs for pairs with maps in their values.
func lastWinsInside(b []byte, all []keyed) (out []byte, dropped int) {
	made := make([]byte, 0, len(b))
	for i := range all {
		p := &all[i]
		if p.shadowed {
			dropped++
			continue
		}
		made = append(made, b[p.at:p.value]...)
		made = appendLastWins(made, b[p.value:p.end])
	}
	return append(b[:0], made...), dropped
}

// appendLastWins appends a value, whose maps have each key once.
func appendLastWins(dst, value []byte) []byte {
	t, n, err := msgpack.ReadToken(value)
	switch {
	case err != nil:
	case t.Kind == msgpack.KindMap:
		pairs, dropped := LastWins(bytes.Clone(value[n:]))
		return append(msgpack.AppendMapHeader(dst, t.Len-dropped), pairs...)
	case t.Kind == msgpack.KindArray:
		dst = msgpack.AppendArrayHeader(dst, t.Len)
		for at := n; at < len(value); {
			k, err := msgpack.Skip(value[at:])
			if err != nil {
				return append(dst, value[at:]...)
			}
			dst = appendLastWins(dst, value[at:at+k])
			at += k
		}
		return dst
	}
	return append(dst, value...)
}

func isMap(first byte) bool {
	return first&0xf0 == fixMap || first == map16 || first == map32
}

func isArray(first byte) bool {
	return first&0xf0 == 0x90 || first == 0xdc || first == 0xdd
}

// Keys is a set of few keys, to be asked on the way of each log call.
type Keys struct {
	bits uint64 // of all keys, so that most others are told apart without looking at the list
	list []string
}

// KeysOf returns the keys of encoded pairs.
func KeysOf(pairs []byte) Keys {
	var k Keys
	all, _ := appendPairs(nil, pairs)
	for _, p := range all {
		k.list = append(k.list, string(p.key))
		if len(p.key) > 0 {
			k.bits |= 1 << shiftOf(string(p.key))
		}
	}
	return k
}

// HasAny reports whether attributes may write a pair with one of the keys.
func (k *Keys) HasAny(attrs []slog.Attr) bool {
	for i := range attrs {
		if key := attrs[i].Key; key == "" || k.bits>>shiftOf(key)&1 != 0 && slices.Contains(k.list, key) {
			return true
		}
	}
	return false
}

// Has is HasAny for one attribute. One without a key may be a group that stands for its attributes.
func (k *Keys) Has(a *slog.Attr) bool {
	return a.Key == "" || k.bits>>shiftOf(a.Key)&1 != 0 && slices.Contains(k.list, a.Key)
}

// shiftOf is the bit of a key, which is not empty.
func shiftOf(key string) uint { return (uint(len(key))*7 + uint(key[0])) % 64 }
