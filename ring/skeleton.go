// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Now as the time of a record means: the wall time of the clock read that keys it.
const Now = math.MinInt64

// Hint remembers which lane an appender used last. The zero value is ready. It must not be used by two goroutines at once.
type Hint struct {
	lane uint32
}

// Record is one record as read.
type Record struct {
	Key  uint64 // monotonic nanoseconds since the ring's birth
	Lane uint16
	Time int64  // Unix nanoseconds, as given to Append
	Data []byte // lies in the ring until the record is done (see Cut); read it within Guard or with Copy
}

// Mark covers records that were handed on and are not yet done: see [Ring.Put].
type Mark struct {
	First, Last uint64   // keys
	Lane        uint16   // of the record First
	Label       [24]byte // the caller's
	Slot        int      // set by Marks; Put ignores it
}

// Loss is what was appended and cannot be read.
type Loss struct {
	Records uint64 // known only of a ring of this process
	Bytes   uint64 // of Records' payloads; of an adopted ring, of the regions
	Regions uint64 // of an adopted ring: places that hold no whole record where one began
}

// Ring is lanes of records.
type Ring struct {
	mu       sync.Mutex
	opts     Options
	base     time.Time
	recs     []Record
	read     int
	last     uint64
	n, bytes uint64
	used     int64
	cut      uint64
	wake     func()
	sleeping bool
	space    chan struct{}
	marks    [64]*Mark
	state    []byte
	counters [16]atomic.Uint64
	closed   bool
	pressure int64
}

// Open makes a ring.
func Open(o *Options) (*Ring, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if opts.Dir != "" {
		return nil, ErrUnsupported
	}
	return &Ring{opts: opts, base: time.Now(), space: make(chan struct{})}, nil
}

// Append copies p into the ring.
func (r *Ring) Append(_ *Hint, t int64, p []byte) (key uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, ErrClosed
	}
	if len(p) > r.opts.MaxRecord {
		return 0, ErrTooLarge
	}
	n := int64(len(p)+7)&^7 + 32
	if r.used+n > r.opts.Size {
		return 0, ErrFull
	}
	now := time.Now()
	key = max(uint64(now.Sub(r.base)), r.last+1)
	r.last = key
	if t == Now {
		t = now.UnixNano()
	}
	before := r.used
	r.used += n
	r.n++
	r.bytes += uint64(len(p))
	r.recs = append(r.recs, Record{Key: key, Lane: 1, Time: t, Data: slices.Clone(p)})
	if r.sleeping || r.pressure > 0 && before < r.pressure && r.used >= r.pressure {
		r.sleeping = false
		if r.wake != nil {
			go r.wake()
		}
	}
	return key, nil
}

// AppendReserved is Append that may use the room kept in reserve.
func (r *Ring) AppendReserved(t int64, p []byte) (key uint64, err error) { return r.Append(nil, t, p) }

// SetWake sets what an appender calls when the reader sleeps. Before the first Append.
func (r *Ring) SetWake(fn func()) { r.wake = fn }

// SetPressure makes an appender call wake, too, when more than so many bytes are in use.
func (r *Ring) SetPressure(bytes int64) { r.pressure = bytes }

// Space is closed when an Append that was refused with ErrFull may succeed.
func (r *Ring) Space() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.space
}

// Anchor makes the wall time of Now follow the system's clock. Call it every second or so.
func (r *Ring) Anchor() {}

// Appended says how much was appended in all.
func (r *Ring) Appended() (records, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n, r.bytes
}

// Used is the bytes of segments in use.
func (r *Ring) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// Size is the bytes of all segments.
func (r *Ring) Size() int64 { return r.opts.Size }

// Failed is nil or wraps ErrFailed.
func (r *Ring) Failed() error { return nil }

// Path is the ring's folder, empty for plain memory.
func (r *Ring) Path() string { return "" }

// Owner is who made the ring.
func (r *Ring) Owner() Owner { return Owner{} }

// Next returns the next record.
func (r *Ring) Next() (Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == len(r.recs) {
		return Record{}, false, nil
	}
	r.read++
	return r.recs[r.read-1], true, nil
}

// Peek is the key of the record that Next would return.
func (r *Ring) Peek() (key uint64, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == len(r.recs) {
		return 0, false, nil
	}
	return r.recs[r.read].Key, true, nil
}

// Guard runs fn, which reads Data of records, and turns a fault of the ring's memory into an error that wraps ErrFailed.
func (r *Ring) Guard(fn func()) error { fn(); return nil }

// Copy appends the Data of one record to dst, or returns an error that wraps ErrFailed.
func (r *Ring) Copy(dst []byte, rec Record) ([]byte, error) { return append(dst, rec.Data...), nil }

// Drained says that Next has returned all there will ever be: of an adopted ring, or of one that failed or is closed.
func (r *Ring) Drained() bool { return false }

// Lost is what was found to be unreadable so far.
func (r *Ring) Lost() Loss { return Loss{} }

// Rewind starts Next over from the oldest record of an adopted ring.
func (r *Ring) Rewind() {
	r.mu.Lock()
	r.read = 0
	r.mu.Unlock()
}

// Sleep announces that the reader will sleep: the first Append calls wake. ready says that there is something already, and that nobody will call wake.
func (r *Ring) Sleep() (ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read < len(r.recs) {
		return true
	}
	r.sleeping = true
	return false
}

// Horizon is a key that no record appended before the call has passed.
func (r *Ring) Horizon() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return uint64(time.Since(r.base))
}

// Put stores a mark. ok=false: the table is full.
func (r *Ring) Put(m Mark) (slot int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.marks {
		if r.marks[i] == nil {
			m.Slot = i
			r.marks[i] = &m
			return i, true
		}
	}
	return 0, false
}

// Clear removes a mark: its records are done.
func (r *Ring) Clear(slot int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks[slot] = nil
	r.free()
}

// Cut says that every record with this key or a lower one is done, unless a mark covers it.
func (r *Ring) Cut(key uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = max(r.cut, key)
	r.free()
}

func (r *Ring) free() {
	n := 0
	for n < r.read && r.recs[n].Key <= r.cut && !slices.ContainsFunc(r.marks[:], func(m *Mark) bool {
		return m != nil && m.First <= r.recs[n].Key
	}) {
		r.used -= int64(len(r.recs[n].Data)+7)&^7 + 32
		n++
	}
	r.recs = r.recs[n:]
	r.read -= n
	if n > 0 {
		close(r.space)
		r.space = make(chan struct{})
	}
}

// Marks returns the marks in the order of First.
func (r *Ring) Marks() []Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Mark
	for _, m := range r.marks {
		if m != nil {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b Mark) int { return int(int64(a.First - b.First)) })
	return all
}

// CutKey is the last Cut.
func (r *Ring) CutKey() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// SetState stores bytes of the caller's, at most 32 KiB, atomically.
func (r *Ring) SetState(b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = slices.Clone(b)
	return nil
}

// State is what SetState stored last, nil if nothing.
func (r *Ring) State() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.state)
}

// Count adds to one of 16 counters that lie in the ring.
func (r *Ring) Count(i int, n uint64) { r.counters[i].Add(n) }

// Counter reads one.
func (r *Ring) Counter(i int) uint64 { return r.counters[i].Load() }

// Close ends the ring and removes its folder.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}

// Leave ends the ring, keeps its files and lets go of the lock, so that somebody may adopt it.
func (r *Ring) Leave() error { return r.Close() }

// Owner is what a ring's owner file says.
type Owner struct {
	Path      string // the ring's folder
	Name      string
	PID       int
	BootID    string
	MachineID string
	RingID    string
	Identity  []byte
	Made      time.Time
}

// Adopt takes over the rings of dead processes.
func Adopt(dir, name string, accept func(Owner) bool, report func(error)) ([]*Ring, error) {
	return nil, nil
}
