// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
)

// Now as the time of a record means: the wall time of the clock read that keys it.
const Now = math.MinInt64

// Append copies p into the ring and returns the record's key: monotonic nanoseconds since the
// ring's birth, larger than that of any record whose Append had returned before. t is the record's
// time in Unix nanoseconds, or [Now]. It allocates nothing and does not wait. With an error, which
// wraps [ErrFull], [ErrTooLarge], [ErrClosed] or [ErrFailed], nothing was appended.
func (r *Ring) Append(h *Hint, t int64, p []byte) (key uint64, err error) {
	if int64(len(p)) > r.head.maxRec {
		return 0, r.tooLarge(len(p))
	}
	l := &r.lanes.all[h.lane]
	old := l.state.Load()
	if old&busy != 0 || !l.state.CompareAndSwap(old, old|busy) {
		if l, old = r.acquire(h); l == nil {
			return 0, r.overErr()
		}
	}
	if key, err = r.add(l, uint16(h.lane), int64(old>>1), t, p); err != nil && errors.Is(err, ErrFull) && r.few() {
		return r.addElsewhere(h, t, p)
	}
	return key, err
}

// addElsewhere appends to any lane that has room in its segment, and begins one only if none has.
// Where there are few segments not every lane can have one, and each that has records of the same
// time would have to wait until all of them are done.
func (r *Ring) addElsewhere(h *Hint, t int64, p []byte) (key uint64, err error) {
	need := recordHeader + align8(int64(len(p)))
	for busy := true; busy && r.over.Load() == 0; {
		busy = false
		for i, n := uint32(reserved+1), r.active.Load(); i < n; i++ {
			l := &r.lanes.all[i]
			old, ok := l.try()
			if !ok {
				busy = true
				continue
			}
			if l.seg != 0 && int64(old>>1)+need <= l.limit {
				h.lane = uint8(i)
				return r.add(l, uint16(i), int64(old>>1), t, p)
			}
			r.putBack(l, old)
		}
		if busy {
			runtime.Gosched()
		}
	}
	l, old := r.acquire(h)
	if l == nil {
		return 0, r.overErr()
	}
	l.begin = true
	return r.add(l, uint16(h.lane), int64(old>>1), t, p)
}

// AppendReserved is Append that may use the segment that all others leave free. It is slower, and
// for what must be said even when the ring is full: one segment's worth until that is done.
func (r *Ring) AppendReserved(t int64, p []byte) (key uint64, err error) {
	if int64(len(p)) > r.head.maxRec {
		return 0, r.tooLarge(len(p))
	}
	l := &r.lanes.all[reserved]
	old, ok := r.hold(l)
	if !ok {
		return 0, r.overErr()
	}
	return r.add(l, reserved, int64(old>>1), t, p)
}

// add writes a record into a lane that is the caller's, and lets it go.
func (r *Ring) add(l *lane, n uint16, tail int64, t int64, p []byte) (key uint64, err error) {
	// Only now, when the lane is seen to be busy: the reader reads its clock before it looks at the
	// lanes, so a lane that it sees idle can bring nothing older than that.
	if r.over.Load() != 0 && !r.takes(n) {
		r.release(l, tail)
		return 0, r.overErr()
	}
	key = r.clock.now()
	for key <= l.last {
		key = r.clock.now()
	}
	need := recordHeader + align8(int64(len(p)))
	off := tail
	if off+need > l.limit {
		if off, err = r.grow(l, n, tail, need, key); err != nil {
			r.release(l, tail)
			return 0, err
		}
	}
	if t == Now {
		t = int64(key) + r.clock.wall.Load()
	}
	if r.shared {
		err = r.putGuarded(l, off, key, t, p)
	} else {
		putRecord(r.mem[off:off+need], l.nonce, off, l.index, key, t, p)
	}
	if err != nil {
		r.release(l, tail)
		return 0, r.fail(err)
	}
	l.last = key
	l.index++
	l.records++
	l.bytes += uint64(len(p))
	l.state.Store(uint64(off+need) << 1) // as release does
	if r.asleep.Load() != 0 {
		r.wakeReader()
	}
	return key, nil
}

// putGuarded is putRecord that survives a fault of the memory.
func (r *Ring) putGuarded(l *lane, off int64, key uint64, t int64, p []byte) (err error) {
	before := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(before)
		if v := recover(); v != nil {
			err = r.faultOf(v)
		}
	}()
	putRecord(r.mem[off:], l.nonce, off, l.index, key, t, p)
	return nil
}

func (r *Ring) tooLarge(n int) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, n, r.head.maxRec)
}
