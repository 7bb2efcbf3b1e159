// SPDX-License-Identifier: Apache-2.0

package record

import (
	"sync"
	"unsafe"
)

// Depth is how many maps and arrays may stand inside each other; the record itself is the first.
// What lies deeper is the text "!DEPTH". It leaves room, within the depth that package msgpack
// reads, for groups that a logger opens around attributes and for a message around the record.
const Depth = 100

// maxSize is how many bytes a value may take before what is nested in it becomes "!SIZE": values
// that share parts, or make new ones when asked, grow exponentially with their depth.
const maxSize = 64 << 20

// tireless is how many visits a value may take, for the same reason: what grows need not write
// anything.
const tireless = 1 << 18

// What stands for a value that cannot be written.
const (
	cycle  = "!CYCLE"
	deep   = "!DEPTH"
	large  = "!SIZE"
	beyond = 4 * Depth // pointers in a row count as well
)

// where says where in a value an encoder stands. It is passed by value, in registers.
type where struct {
	path  *path // nil until something is entered that could hold itself
	depth int   // maps and arrays around this value
	addr  bool  // this value is a variable: methods of its address may be called
}

// A path holds the pointers, maps and slices in which a value stands: those that could be met again
// inside.
type path struct {
	visits []visit
	limit  int // of the length of the destination
	work   int // visits so far
}

// A visit is of what stands at an address as a type: a struct and its first field have one address.
// n is the length of a slice.
type visit struct {
	p, typ unsafe.Pointer
	n      int
}

var paths = sync.Pool{New: func() any { return &path{visits: make([]visit, 0, 16)} }}

// enter puts a visit on the path, which leave takes off again, unless it says what is wrong.
func (w where) enter(b []byte, v visit) (_ where, wrong string) {
	if w.path == nil {
		w.path = paths.Get().(*path)
		w.path.limit, w.path.work = len(b)+maxSize, 0
	} else {
		if w.path.work++; w.path.work > tireless || len(b) > w.path.limit {
			return w, large
		}
		if len(w.path.visits) >= beyond {
			return w, deep
		}
		for i := len(w.path.visits) - 1; i >= 0; i-- {
			if w.path.visits[i] == v {
				return w, cycle
			}
		}
	}
	w.path.visits = append(w.path.visits, v)
	return w, ""
}

// leave ends the last visit. The first to enter is the last to leave.
func (w where) leave() {
	p := w.path
	n := len(p.visits) - 1
	p.visits[n] = visit{}
	p.visits = p.visits[:n]
	if n == 0 {
		paths.Put(p)
	}
}

// word is an interface value without methods as the runtime keeps it: its type, and the value
// itself if that is a pointer, map, channel or function, else a pointer to it.
type word struct{ typ, data unsafe.Pointer }

// hidden returns p in a way that does not make the compiler move what it points to to the heap.
// Nothing may keep it: encoders call methods of an address only if where.addr says so, and a path
// keeps no address of a variable that is hidden.
//
//go:nosplit
func hidden(p unsafe.Pointer) unsafe.Pointer {
	x := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}
