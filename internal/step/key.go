// SPDX-License-Identifier: Apache-2.0

package step

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"

	"github.com/spillwaylog/spillway/msgpack"
)

// A keyOf makes the key of an event: half of a SHA-256, so that nobody finds events of two keys
// that are one.
type keyOf struct {
	by    []string
	whole bool // all of the event but its time

	parts []path // of by; nil: the tag
	sum   hash.Hash
	room  []byte
}

// read understands by.
func (k *keyOf) read(wrong func(error, ...any)) {
	k.sum, k.room = sha256.New(), make([]byte, 0, 2*sha256.Size)
	for i, text := range k.by {
		var p path
		if text != "tag" {
			p = pathOf(text, wrong, "by", i)
		}
		k.parts = append(k.parts, p)
	}
}

// of returns the key of an event.
func (k *keyOf) of(e *event) (key [keyLen]byte) {
	k.sum.Reset()
	k.room = k.room[:0]
	if k.whole {
		k.text(e.tag)
		k.sum.Write(k.room)
		e.writeFields(k.sum)
	} else {
		for _, p := range k.parts {
			if p == nil {
				k.text(e.tag)
			} else {
				k.room = appendKey(k.room, e.get(p))
			}
		}
		k.sum.Write(k.room)
	}
	key = [keyLen]byte(k.sum.Sum(k.room[:0]))
	if cap(k.room) > keepsBytes {
		k.room = make([]byte, 0, 2*sha256.Size)
	}
	return key
}

func (k *keyOf) text(s string) {
	k.room = append(binary.AppendUvarint(k.room, uint64(len(s))), s...)
}

// writeFields writes all fields, in their order. It is the same for an event that steps have
// written anew.
func (e *event) writeFields(w hash.Hash) {
	if !e.dirty {
		_, fields, _ := isMap(e.raw[len(e.head):])
		w.Write(fields)
		return
	}
	for i := range e.fields {
		switch f := &e.fields[i]; {
		case f.gone:
		case f.both != nil:
			w.Write(f.both)
		default:
			w.Write(f.key)
			w.Write(f.value)
		}
	}
}

// appendKey appends a value so that equal ones are the same bytes, and no others. Numbers are the
// numbers that they are, str and bin are text, and what is missing is nil. Maps and lists are equal
// if they are written alike.
func appendKey(dst, value []byte) []byte {
	if value == nil {
		return append(dst, 'n')
	}
	if text, ok := textOf(value); ok {
		return append(binary.AppendUvarint(append(dst, 't'), uint64(len(text))), text...)
	}
	t, _, err := msgpack.ReadToken(value)
	n, number := figureOf(&t)
	switch {
	case err == nil && t.Kind == msgpack.KindNil:
		return append(dst, 'n')
	case err != nil || !number:
		return append(binary.AppendUvarint(append(dst, 'v'), uint64(len(value))), value...)
	}
	if n.float {
		whole, ok := n.whole()
		if !ok {
			return binary.LittleEndian.AppendUint64(append(dst, 'f'), math.Float64bits(n.f))
		}
		n = whole
	}
	kind := byte('i')
	if n.negative {
		kind = 'm'
	}
	return binary.LittleEndian.AppendUint64(append(dst, kind), n.size)
}

// whole is the integer that a float is, if it is one that an event may have.
func (a figure) whole() (figure, bool) {
	size := math.Abs(a.f)
	if size != math.Trunc(size) || size >= 1<<64 {
		return a, false
	}
	return figure{negative: a.f < 0, size: uint64(size)}, true
}

// farthest is how far from 1970 a time may be, in seconds: what is farther is there, so that
// differences are no more than an int64 holds.
const farthest = math.MaxUint32

// time is the event's time in nanoseconds since 1970.
func (e *event) time() int64 {
	_, n, _ := msgpack.ReadToken(e.head) // read has seen that it is an array
	t, k, err := msgpack.ReadToken(e.head[n:])
	if n += k; err == nil && t.Kind == msgpack.KindArray { // beside the time there is something
		t, k, err = msgpack.ReadToken(e.head[n:])
		n += k
	}
	if err != nil {
		return 0
	}
	switch t.Kind {
	case msgpack.KindExt:
		if at := e.head[n:]; t.Ext == 0 && t.Len == 8 && len(at) >= 8 {
			return int64(binary.BigEndian.Uint32(at))*1e9 + int64(binary.BigEndian.Uint32(at[4:]))
		}
	case msgpack.KindInt, msgpack.KindUint:
		if sec, ok := t.Int(); ok {
			return min(max(sec, -farthest), farthest) * 1e9
		}
		return farthest * 1e9
	case msgpack.KindFloat32, msgpack.KindFloat64:
		if sec := t.Float(); sec == sec {
			return int64(min(max(sec, -farthest), farthest) * 1e9)
		}
	}
	return 0
}
