// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// A typePlan says how values of one type are written. It is made once, with those of all types that
// can be reached from it, and never changes after that.
type typePlan struct {
	typ    unsafe.Pointer // the first word of an interface that holds such a value
	enc    encoder        // writes a value, methods honoured
	bare   encoder        // writes a value as its kind says, whatever methods it has
	elem   *typePlan      // of a pointer, slice, array or map
	key    keyEncoder     // of a map
	steps  []step         // of a struct
	header []byte         // of a struct: its map header
	room   int            // of a struct: what is needed for the header and for what takes a fixed room in the steps

	kind   reflect.Kind
	op     op   // how the steps of a struct write it without a call
	inside bool // the value is the second word of an interface, not what that points to
	varies bool // some steps may be left out
	again  bool // a value may be met again inside itself
	open   bool // a value may hold anything

	method     method         // what the type offers by its methods
	addrMethod method         // and its address
	pointer    unsafe.Pointer // the first word of an interface that holds a pointer to it

	rtype   reflect.Type
	size    uintptr
	length  int // of an array
	scratch sync.Pool
}

// An encoder appends the value at p.
type encoder func(b []byte, p unsafe.Pointer, pl *typePlan, w where) []byte

// near finds the plans of types by a hash of their address, in one of the next few slots. A slot
// once taken stays so: the first types, which are nearly always all there are, are found without a
// write that other cores would see. all has every plan.
var (
	near     [1 << nearBits]atomic.Pointer[typePlan]
	all      sync.Map // reflect.Type → *plan
	building sync.Mutex
)

const (
	nearBits = 10
	nearby   = 4
)

func planOf(v *any) *typePlan {
	typ := (*word)(unsafe.Pointer(v)).typ
	h := uint32(uintptr(typ)>>4) * 0x9e3779b1 >> (32 - nearBits)
	if pl := near[h].Load(); pl != nil && pl.typ == typ {
		return pl
	}
	return planNear(h, typ, reflect.TypeOf(*v))
}

func planNear(h uint32, typ unsafe.Pointer, t reflect.Type) *typePlan {
	for i := range uint32(nearby) {
		slot := &near[(h+i)%(1<<nearBits)]
		pl := slot.Load()
		if pl == nil {
			pl = planFor(t)
			slot.CompareAndSwap(nil, pl)
			return pl
		}
		if pl.typ == typ {
			return pl
		}
	}
	return planFor(t)
}

func planFor(t reflect.Type) *typePlan {
	if pl, ok := all.Load(t); ok {
		return pl.(*typePlan)
	}
	building.Lock()
	defer building.Unlock()
	b := builder{plans: map[reflect.Type]*typePlan{}}
	pl := b.plan(t)
	for _, p := range b.plans {
		p.again = p.open || p.reaches(p, map[*typePlan]bool{})
	}
	for t, p := range b.plans {
		all.LoadOrStore(t, p)
	}
	return pl
}

// builder makes plans of types that know each other.
type builder struct {
	plans map[reflect.Type]*typePlan
}

func (b *builder) plan(t reflect.Type) *typePlan {
	if pl, ok := b.plans[t]; ok {
		return pl
	}
	if pl, ok := all.Load(t); ok {
		return pl.(*typePlan)
	}
	pl := &typePlan{rtype: t, kind: t.Kind(), size: t.Size()}
	b.plans[t] = pl
	pl.typ, pl.pointer = typeWord(t), typeWord(reflect.PointerTo(t))
	pl.inside = isInside(t)

	if s, ok := special[t]; ok {
		pl.op, pl.bare, pl.enc, pl.open = s.op, s.enc, s.enc, s.open
		return pl
	}
	b.byKind(pl, t)
	pl.enc = pl.bare
	if pl.kind == reflect.Pointer || pl.kind == reflect.Interface { // what they lead to has the methods
		return pl
	}
	if pl.method, pl.addrMethod = methodOf(t), methodOf(reflect.PointerTo(t)); pl.addrMethod != none {
		pl.op, pl.enc = opOther, encodeByMethod
		pl.open = pl.addrMethod == logValuer
	}
	return pl
}

// typeWord returns the first word of an interface that holds a value of type t: a reflect.Type is a
// pointer to what that points to. Making such a value would tell as well, but there are types of a
// gigabyte.
func typeWord(t reflect.Type) unsafe.Pointer { return (*word)(unsafe.Pointer(&t)).data }

// isInside asks the runtime how it keeps such values, for the rule has changed.
func isInside(t reflect.Type) bool {
	if t.Size() != unsafe.Sizeof(uintptr(0)) || t.Kind() == reflect.Interface {
		return false
	}
	var target int
	v := reflect.New(t)
	*(*unsafe.Pointer)(v.UnsafePointer()) = unsafe.Pointer(&target)
	x := v.Elem().Interface()
	return (*word)(unsafe.Pointer(&x)).data == unsafe.Pointer(&target)
}

// reaches reports whether a value of the plan may hold one of the plan target, or anything.
func (pl *typePlan) reaches(target *typePlan, seen map[*typePlan]bool) bool {
	next := func(p *typePlan) bool {
		if p == nil || seen[p] {
			return p == target
		}
		seen[p] = true
		return p == target || p.open || p.reaches(target, seen)
	}
	if next(pl.elem) {
		return true
	}
	for i := range pl.steps {
		if next(pl.steps[i].plan) {
			return true
		}
	}
	return false
}

// special are the types whose methods do not count.
var special = map[reflect.Type]struct {
	op   op
	enc  encoder
	open bool
}{
	reflect.TypeFor[time.Time]():     {opTime, encodeTime, false},
	reflect.TypeFor[time.Duration](): {opInt64, encodeInt[int64], false},
	reflect.TypeFor[json.Number]():   {opOther, encodeNumber, false},
}

func init() { // not above, for these lead back here
	s := special[reflect.TypeFor[json.Number]()]
	s.open = true
	s.enc = encodeSlogValue
	special[reflect.TypeFor[slog.Value]()] = s
	s.enc = encodeSlogAttr
	special[reflect.TypeFor[slog.Attr]()] = s
	s.enc = encodeSlogAttrs
	special[reflect.TypeFor[[]slog.Attr]()] = s
}

// byKind fills in how a value is written when methods do not count.
func (b *builder) byKind(pl *typePlan, t reflect.Type) {
	switch pl.kind {
	case reflect.Struct:
		pl.bare = encodeStruct
		b.structPlan(pl, t)
	case reflect.Pointer:
		pl.bare = encodePointer
		pl.elem = b.plan(t.Elem())
	case reflect.Interface:
		pl.open = true
		pl.bare = encodeMethodInterface
		if t.NumMethod() == 0 {
			pl.bare = encodeAny
		}
	case reflect.Slice:
		pl.bare = encodeSlice
		pl.elem = b.plan(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 && pl.elem.addrMethod == none {
			pl.bare = encodeBytes
		}
	case reflect.Array:
		pl.bare, pl.length = encodeArray, t.Len()
		pl.elem = b.plan(t.Elem())
	case reflect.Map:
		b.mapPlan(pl, t)
	default:
		s := scalars[pl.kind]
		pl.op, pl.bare = s.op, s.enc
	}
}
