// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/binary"
	"reflect"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// A step writes one field of a struct: its key, which is ready, and its value. It is kept small:
// the steps of a struct are read each time.
type step struct {
	low, high uint64 // the key with its header, written as two words, whatever the length
	size      int    // of the key with its header
	off       uintptr
	detour    *detour // nil for most
	plan      *typePlan
	rest      int // what is needed behind the key for all that takes a fixed room in this and the later steps
	op        op
}

// A detour is what few fields need: those with a key of more than 16 bytes, those that may be left
// out, and those behind a pointer.
type detour struct {
	key  string
	hops []uintptr // offsets of the embedded pointers on the way; off counts from the last one's target
	skip func(p unsafe.Pointer, w where) bool
}

// structPlan makes the steps of a struct.
func (b *builder) structPlan(pl *typePlan, t reflect.Type) {
	fields := fieldsOf(t)
	pl.steps = make([]step, len(fields))
	for i, f := range fields {
		s, d := &pl.steps[i], &detour{}
		at := t
		for _, n := range f.index {
			if at.Kind() == reflect.Pointer {
				at = at.Elem()
				d.hops = append(d.hops, s.off)
				s.off = 0
			}
			sf := at.Field(n)
			s.off += sf.Offset
			at = sf.Type
		}
		s.plan = b.plan(f.typ)
		s.op = s.plan.op
		if f.quoted && s.plan.bareScalar() {
			s.plan, s.op = &typePlan{enc: encodeQuoted, elem: s.plan}, opOther
		}
		d.skip = f.skip()
		rare := d.hops != nil || d.skip != nil
		pl.varies = pl.varies || rare
		key := msgpack.AppendString(nil, f.name)
		s.size = len(key)
		var words [16]byte
		if copy(words[:], key) < len(key) || rare {
			d.key, s.detour = string(key), d
		}
		s.low, s.high = binary.LittleEndian.Uint64(words[:]), binary.LittleEndian.Uint64(words[8:])
	}
	rest := 0
	for i := len(pl.steps) - 1; i >= 0; i-- {
		s := &pl.steps[i]
		rest += scalar
		s.rest = rest
		rest += max(16, s.size)
	}
	if pl.varies {
		pl.header, _ = BeginMap(nil, len(fields))
	} else {
		pl.header = msgpack.AppendMapHeader(nil, len(fields))
	}
	pl.room = len(pl.header) + rest
}

// bareScalar reports whether the plan is of a scalar, or of a pointer to one, that no method of its
// type writes.
func (pl *typePlan) bareScalar() bool {
	if pl.kind == reflect.Pointer {
		pl = pl.elem
	}
	return pl.addrMethod == none
}

// reach returns where the field of a struct at p is that needs a longer way, or nil if it is left
// out.
func (s *step) reach(p unsafe.Pointer, w where) unsafe.Pointer {
	for _, h := range s.detour.hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, h)); p == nil {
			return nil
		}
		w.addr = true
	}
	p = unsafe.Add(p, s.off)
	if s.detour.skip != nil && s.detour.skip(p, w) {
		return nil
	}
	return p
}

func encodeStruct(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte {
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	w.depth++
	buf, j := full(b, pl.room)
	start := j
	j += copy(buf[j:], pl.header)
	left := 0
	steps := pl.steps
	for i := range steps {
		s := &steps[i]
		var q unsafe.Pointer
		if s.detour == nil {
			q = unsafe.Add(p, s.off)
			k := buf[j : j+16]
			binary.LittleEndian.PutUint64(k, s.low)
			binary.LittleEndian.PutUint64(k[8:], s.high)
			j += int(s.size)
		} else {
			if q = s.reach(p, w); q == nil {
				left++
				continue
			}
			j += copy(buf[j:], s.detour.key)
		}
		switch s.op {
		case opBool:
			j = putBool(buf, j, *(*bool)(q))
		case opInt:
			j = putInt(buf, j, int64(*(*int)(q)))
		case opInt8:
			j = putInt(buf, j, int64(*(*int8)(q)))
		case opInt16:
			j = putInt(buf, j, int64(*(*int16)(q)))
		case opInt32:
			j = putInt(buf, j, int64(*(*int32)(q)))
		case opInt64:
			j = putInt(buf, j, *(*int64)(q))
		case opUint:
			j = putUint(buf, j, uint64(*(*uint)(q)))
		case opUint8:
			j = putUint(buf, j, uint64(*(*uint8)(q)))
		case opUint16:
			j = putUint(buf, j, uint64(*(*uint16)(q)))
		case opUint32:
			j = putUint(buf, j, uint64(*(*uint32)(q)))
		case opUint64:
			j = putUint(buf, j, *(*uint64)(q))
		case opFloat32:
			j = putFloat32(buf, j, *(*float32)(q))
		case opFloat64:
			j = putFloat(buf, j, *(*float64)(q))
		case opString:
			v := *(*string)(q)
			if n := len(v) + header + s.rest; uint(len(buf)-j) < uint(n) {
				if uint64(len(v)) > longest {
					buf, j = full(appendString(buf[:j], v), s.rest)
					continue
				}
				buf = grow(buf, j, n)
			}
			j = putString(buf, j, v)
		case opTime:
			if n := header + longTime + s.rest; len(buf)-j < n {
				buf = grow(buf, j, n)
			}
			if k := putTime(buf, j, *(*time.Time)(q)); k > j {
				j = k
				continue
			}
			buf, j = full(appendTime(buf[:j], *(*time.Time)(q)), s.rest)
		default:
			inner := w
			inner.addr = w.addr || s.detour != nil && s.detour.hops != nil
			buf, j = full(s.plan.enc(buf[:j], q, s.plan, inner), s.rest)
		}
	}
	b = buf[:j]
	if pl.varies {
		return EndMap(b, start, len(pl.steps)-left)
	}
	return b
}
