// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/binary"
	"reflect"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/msgpack"
)

// A step writes one field of a struct: its key, which is ready, and its value. What nearly all fields need comes first.
type step struct {
	low, high uint64 // the key with its header, if that is at most 16 bytes: written as two words, whatever the length
	off       uintptr
	rest      int // what is needed for what takes a fixed room in this and the later steps, less what this one has written before its value
	plan      *plan
	op        op
	size      uint8 // of the key with its header; 0: see key
	rare      bool  // there are hops, or the field may be left out
	key       []byte
	hops      []uintptr // offsets of the embedded pointers on the way; off counts from the last one's target
	skip      func(p unsafe.Pointer, w where) bool
}

// structPlan makes the steps of a struct.
func (b *builder) structPlan(pl *plan, t reflect.Type) {
	fields := fieldsOf(t)
	pl.steps = make([]step, len(fields))
	for i, f := range fields {
		s := &pl.steps[i]
		at := t
		for _, n := range f.index {
			if at.Kind() == reflect.Pointer {
				at = at.Elem()
				s.hops = append(s.hops, s.off)
				s.off = 0
			}
			sf := at.Field(n)
			s.off += sf.Offset
			at = sf.Type
		}
		s.plan = b.plan(f.typ)
		s.op = s.plan.op
		if f.quoted && s.plan.bareScalar() {
			s.plan, s.op = &plan{enc: encodeQuoted, elem: s.plan}, opOther
		}
		s.skip = f.skip()
		s.rare = s.hops != nil || s.skip != nil
		pl.varies = pl.varies || s.rare
		s.key = msgpack.AppendString(nil, f.name)
		if len(s.key) <= 16 {
			var words [16]byte
			copy(words[:], s.key)
			s.low, s.high = binary.LittleEndian.Uint64(words[:]), binary.LittleEndian.Uint64(words[8:])
			s.size = uint8(len(s.key))
		}
	}
	rest := 0
	for i := len(pl.steps) - 1; i >= 0; i-- {
		s := &pl.steps[i]
		rest += scalar
		s.rest = rest
		rest += max(16, len(s.key))
	}
	if pl.varies {
		pl.header, _ = BeginMap(nil, len(fields))
	} else {
		pl.header = msgpack.AppendMapHeader(nil, len(fields))
	}
	pl.room = len(pl.header) + rest
}

// bareScalar reports whether the plan is of a scalar, or of a pointer to one, that no method of its type writes.
func (pl *plan) bareScalar() bool {
	if pl.kind == reflect.Pointer {
		pl = pl.elem
	}
	return pl.addrMethod == none
}

// reach returns where the field of a struct at p is that needs a longer way, or nil if it is left out.
func (s *step) reach(p unsafe.Pointer, w where) unsafe.Pointer {
	for _, h := range s.hops {
		if p = *(*unsafe.Pointer)(unsafe.Add(p, h)); p == nil {
			return nil
		}
		w.addr = true
	}
	p = unsafe.Add(p, s.off)
	if s.skip != nil && s.skip(p, w) {
		return nil
	}
	return p
}

func encodeStruct(b []byte, p unsafe.Pointer, pl *plan, w where) []byte {
	if w.depth >= Depth {
		return appendString(b, deep)
	}
	w.depth++
	buf, j := full(b, pl.room)
	start := j
	j += copy(buf[j:], pl.header)
	left := 0
	for i := range pl.steps {
		s := &pl.steps[i]
		var q unsafe.Pointer
		if !s.rare {
			q = unsafe.Add(p, s.off)
		} else if q = s.reach(p, w); q == nil {
			left++
			continue
		}
		if s.size != 0 {
			k := buf[j : j+16]
			binary.LittleEndian.PutUint64(k, s.low)
			binary.LittleEndian.PutUint64(k[8:], s.high)
			j += int(s.size)
		} else {
			j += copy(buf[j:], s.key)
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
			inner.addr = w.addr || s.hops != nil
			buf, j = full(s.plan.enc(buf[:j], q, s.plan, inner), s.rest)
		}
	}
	b = buf[:j]
	if pl.varies {
		return EndMap(b, start, len(pl.steps)-left)
	}
	return b
}
