// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"io"
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// How this file is organised.
//
// A sender that misses an ack sends the chunk again, on a fresh connection
// (docs/forward.md rule 28). A chunk is such a repeat when its fingerprint is known,
// and came on another connection than this one. The fingerprint covers the id, the
// tag (the sender's and the input's), the length and a hash of the entries, and
// the peer's address unless the id is one of Spillway's own, which are random
// and never used twice. Without the connection in the rule data would be lost:
// Fluent Bit's ids are hashes of the content, so the same id on the same
// connection is new data that happens to be equal. An id of Spillway's own is a
// repeat on whatever connection: a relay sends on, on one connection, what it
// got twice.
//
//	begin ─┬─ fresh ──► Append, Flush ──► finish: the fingerprint is known from now on
//	       ├─ repeat of what is stored at a position: wait for that position
//	       └─ busy: another connection is storing it just now: wait, begin again
//
// The fingerprints live in a window of bounded age and number (seen, in order of
// arrival) and in a file (repeats_file.go) that lags behind; what the file
// lacks after a crash is in the journal, where each record carries its fingerprint.

const (
	repeatAge   = time.Hour
	repeatBytes = 64 << 20
	// repeatCount is how many fingerprints are known at most: what an index of a
	// million cells of 8 bytes takes in. A fingerprint costs 48 bytes besides, which
	// makes 44 MiB; the rest of repeatBytes is for what goes to the file.
	repeatCount = 3 << 20 / 4
	// maxUnsaved bounds what waits for the file, of which there are two: one
	// fills while the other is written. What does not fit is taken from the
	// window when the disk works again.
	maxUnsaved = 8 << 20
)

// A fingerprint names one chunk's content and where it came from.
type fingerprint [16]byte

// seen is one fingerprint that is stored, or being stored.
type seen struct {
	fingerprint fingerprint
	pos         journal.Position
	at          uint32 // seconds since 1970
	origin      uint32 // the connection it was stored from; 0: of an earlier process
	last        uint32 // the connection that repeated it last
	by          uint32 // the connection that is storing it
	storing     uint32 // how many equal chunks are on their way into the journal
	stored      uint16 // how many equal chunks came from origin; 0: none
	used        uint16 // how many of them last has repeated
}

const slotSize = int64(unsafe.Sizeof(seen{}))

// An inFlightGroup is the chunks of one group that asked for acks, from begin to
// finish.
type inFlightGroup struct {
	candidates []candidate

	floor journal.Position // all of them will lie behind it
	place int              // in repeats.inFlight
}

// repeats recognises chunks that were stored before. Safe for concurrent use.
type repeats struct {
	hash cipher.AEAD // used for its authentication tag only: a keyed hash

	mu       sync.Mutex
	slots    slots // a circle once there are repeatCount of them
	oldest   int   // slot of the oldest, when slots is a full circle
	index    fingerprintIndex
	touched  uint64 // keeps the compiler from leaving index.touch out
	inFlight []*inFlightGroup
	waiters  map[fingerprint]chan struct{} // closed when storing has ended
	unsaved  []byte                        // records for the file
	spare    []byte                        // what unsaved was before the last save, for its memory
	overrun  bool                          // there was no room for some in unsaved

	fingerprinters sync.Pool // *printer
	now            func() time.Time
}

type fingerprinter struct{ text, sum []byte }

// maxCopy is up to what length copying entries is cheaper than hashing twice.
const maxCopy = 4 << 10

func newRepeats(key []byte) (*repeats, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	hash, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &repeats{
		hash:           hash,
		waiters:        make(map[fingerprint]chan struct{}),
		fingerprinters: sync.Pool{New: func() any { return new(fingerprinter) }},
		now:            time.Now,
	}, nil
}

// fixedNonce may be used for every fingerprint because the tags never leave this
// machine: GMAC is a keyed universal hash then, at memory speed, and nobody
// without the key can make two chunks collide.
var fixedNonce = make([]byte, 12)

// fingerprint hashes the uncompressed entries as they came: before times of 0 became
// the present time, which is another one when they come again.
func (r *repeats) fingerprint(c *forward.Chunk, peer string) fingerprint {
	p := r.fingerprinters.Get().(*fingerprinter)
	defer r.fingerprinters.Put(p)
	if c.UniqueID {
		peer = ""
	}
	t := p.text[:0]
	if sent := sentTag(c); sent != "" { // both count: two tags may become one, and two inputs make two of one
		t = binary.AppendUvarint(t, math.MaxUint64) // no peer is as long
		t = append(binary.AppendUvarint(t, uint64(len(sent))), sent...)
	}
	t = append(binary.AppendUvarint(t, uint64(len(peer))), peer...)
	t = append(binary.AppendUvarint(t, uint64(len(c.ID))), c.ID...)
	t = append(binary.AppendUvarint(t, uint64(len(c.Tag))), c.Tag...)
	t = r.content(p, t, c)
	p.text = t
	p.sum = r.hash.Seal(p.sum[:0], fixedNonce, nil, t)
	return fingerprint(p.sum)
}

// maxBlock is the length from which on entries are hashed in blocks of hashBlock, each with the
// sum before it: what is so long may not be in memory as a whole.
const (
	maxBlock  = 8 << 20
	hashBlock = 1 << 20
)

// content appends what stands for the entries of a chunk: their length, and themselves or a hash.
func (r *repeats) content(p *fingerprinter, t []byte, c *forward.Chunk) []byte {
	raw := c.Entries
	if c.Sent != nil && c.Sent.Entries != nil {
		raw = c.Sent.Entries
	}
	switch n := len(raw); {
	case raw == nil && c.Compressed != nil, n > maxBlock:
	case n <= maxCopy:
		return append(binary.AppendUvarint(t, uint64(n)), raw...)
	default:
		p.sum = r.hash.Seal(p.sum[:0], fixedNonce, nil, raw)
		return append(binary.AppendUvarint(t, uint64(n)), p.sum...)
	}
	var z forward.Inflater
	from, size := z.Raw(c), uint64(0)
	block := make([]byte, 16+hashBlock) // the sum before it, and the block
	for {
		n, err := io.ReadFull(from, block[16:])
		size += uint64(n)
		if n > 0 {
			p.sum = r.hash.Seal(p.sum[:0], fixedNonce, nil, block[:16+n])
			copy(block, p.sum)
		}
		if err != nil { // the end: that it can be decompressed was seen when it came
			break
		}
	}
	return append(binary.AppendUvarint(t, size), block[:16]...)
}

type verdict int

const (
	fresh  verdict = iota // store it, set pos if that went well, then call finish
	repeat                // it is stored at a position
	busy                  // another connection is storing it: wait, begin again
)

// A candidate is a chunk that asked for an ack: what to ask of begin, and its
// answers.
type candidate struct {
	fingerprint fingerprint
	conn        uint64
	uniqueID    bool // the id is one of Spillway's: whatever has it is the same chunk

	verdict verdict
	pos     journal.Position // of a repeat, or as set for finish
	slot    int              // of a fresh one
	done    <-chan struct{}  // of a busy one
}

// begin decides for each candidate what it is, up to the first that is busy; it
// leaves out those behind that one. floor is a position that all of them will
// lie behind.
func (r *repeats) begin(f *inFlightGroup, floor journal.Position) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched = r.index.touch(f.candidates)
	for i := range f.candidates {
		if r.beginOne(&f.candidates[i], now); f.candidates[i].verdict == busy {
			f.candidates = f.candidates[:i+1]
			break
		}
	}
	f.floor, f.place = floor, len(r.inFlight)
	r.inFlight = append(r.inFlight, f)
}

func (r *repeats) beginOne(c *candidate, now time.Time) {
	conn := uint32(c.conn)
	c.verdict, c.pos = fresh, 0
	slot := r.index.find(c.fingerprint, &r.slots)
	if slot < 0 {
		slot = r.takeLocked(c.fingerprint)
	}
	s := r.slots.at(slot)
	switch {
	case s.storing > 0 && s.by != conn:
		c.verdict, c.done = busy, r.waiter(c.fingerprint)
		return
	case s.storing > 0 && c.uniqueID: // it stands before it in the same group
		c.verdict = repeat
		return
	case s.storing == 0 && s.young(now) && (c.uniqueID && s.stored > 0 || s.repeatedBy(conn)):
		c.verdict, c.pos = repeat, s.pos
		return
	}
	c.slot = slot
	s.storing++
	s.by = conn
}

func (r *repeats) waiter(p fingerprint) <-chan struct{} {
	done := r.waiters[p]
	if done == nil {
		done = make(chan struct{})
		r.waiters[p] = done
	}
	return done
}

// finish notes which of the fresh ones among the candidates are in the journal:
// those that have a position.
func (r *repeats) finish(f *inFlightGroup) {
	at := uint32(r.now().Unix())
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range f.candidates {
		if c := &f.candidates[i]; c.verdict == fresh {
			r.finishOne(c, at)
		}
	}
	last := r.inFlight[len(r.inFlight)-1]
	r.inFlight[f.place], last.place = last, f.place
	r.inFlight = r.inFlight[:len(r.inFlight)-1]
}

// yield finishes those of a group that are in the journal, and notes that all
// behind them will lie behind floor.
func (r *repeats) yield(f *inFlightGroup, floor journal.Position) {
	at := uint32(r.now().Unix())
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range f.candidates {
		c := &f.candidates[i]
		if c.pos == 0 {
			break
		}
		if c.verdict == fresh {
			r.finishOne(c, at)
			c.verdict = repeat
		}
	}
	f.floor = max(f.floor, floor)
}

func (r *repeats) finishOne(c *candidate, at uint32) {
	s := r.slots.at(c.slot)
	if s.fingerprint != c.fingerprint { // it was pushed out of the window meanwhile
		s = r.slots.at(r.takeLocked(c.fingerprint))
		s.storing = 1
	}
	if c.pos > 0 {
		s.add(c.pos, at, uint32(c.conn))
		r.noteUnsavedLocked(c.fingerprint, c.pos, at)
	}
	if s.storing--; s.storing == 0 && len(r.waiters) > 0 {
		if done := r.waiters[c.fingerprint]; done != nil {
			delete(r.waiters, c.fingerprint)
			close(done)
		}
	}
}

// noteUnsavedLocked has the file get a record. With mu held.
func (r *repeats) noteUnsavedLocked(p fingerprint, pos journal.Position, at uint32) {
	if len(r.unsaved) < maxUnsaved-seenRecordSize {
		r.unsaved = appendSeen(r.unsaved, p, pos, at)
	} else {
		r.overrun = true
	}
}

// takeLocked finds a slot for a fingerprint that has none, at the expense of the oldest one
// if need be. The caller holds mu, or is alone.
func (r *repeats) takeLocked(p fingerprint) int {
	i := r.slots.n
	if i < repeatCount {
		r.slots.grow()
	} else {
		i = r.oldest
		r.index.remove(r.slots.at(i).fingerprint, i)
		r.oldest = (i + 1) % repeatCount
	}
	*r.slots.at(i) = seen{fingerprint: p}
	r.index.insert(p, i)
	return i
}

// learn adds a fingerprint that an earlier process stored. Of one chunk the file and
// the journal may both tell.
func (r *repeats) learn(p fingerprint, pos journal.Position, at uint32) {
	i := r.index.find(p, &r.slots)
	if i < 0 {
		i = r.takeLocked(p)
	}
	if s := r.slots.at(i); s.stored == 0 || pos > s.pos {
		s.add(pos, at, 0)
	}
}

func (s *seen) young(now time.Time) bool {
	return now.Sub(time.Unix(int64(s.at), 0)) <= repeatAge
}

// add notes one more chunk of this fingerprint that was stored.
func (s *seen) add(pos journal.Position, at, conn uint32) {
	if s.stored == 0 || s.origin != conn {
		s.origin, s.stored, s.last, s.used = conn, 0, 0, 0
	}
	if s.stored < ^uint16(0) {
		s.stored++
	}
	s.pos, s.at = max(s.pos, pos), at
}

// repeatedBy says whether the chunk that arrives on conn repeats a stored one,
// and remembers that it did. A connection can repeat each stored chunk once:
// a second equal one on the same connection is new data again.
func (s *seen) repeatedBy(conn uint32) bool {
	if conn == s.origin {
		return false
	}
	if conn != s.last {
		s.last, s.used = conn, 0
	}
	if s.used >= s.stored {
		return false
	}
	s.used++
	return true
}

// stats tells what the window holds and how far back it reaches: repeatAge until
// more chunks than it has room for arrive within that time.
func (r *repeats) stats() RepeatsStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := RepeatsStats{Chunks: r.slots.n, MaxChunks: repeatCount, Bytes: r.bytesLocked(), Age: repeatAge}
	if r.slots.n == repeatCount {
		// Clocks are set back.
		st.Age = min(repeatAge, max(0, r.now().Sub(time.Unix(int64(r.slots.at(r.oldest).at), 0))))
	}
	return st
}

// bytesLocked is the memory of the window. With mu held.
func (r *repeats) bytesLocked() int64 {
	return int64(len(r.slots.blocks))*blockSlots*slotSize + int64(len(r.index.cells))*8 +
		int64(cap(r.unsaved)+cap(r.spare))
}

// settled is the position up to which every fingerprint is in unsaved or the file,
// given that the journal is durable up to synced: a fingerprint whose chunk is still
// being stored holds it back.
func (r *repeats) settled(synced journal.Position) journal.Position {
	for _, f := range r.inFlight {
		synced = min(synced, f.floor)
	}
	return synced
}
