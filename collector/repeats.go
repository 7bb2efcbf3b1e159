// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"sync"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// How this file is organised.
//
// A sender that misses an ack sends the chunk again, on a fresh connection
// (docs/forward.md rule 28). A chunk is such a repeat when its print is known,
// and came on another connection than this one. The print covers the id, the
// tag, the length and a hash of the entries, and the peer's address unless the
// id is one of Spillway's own, which are random and never used twice. Without
// the connection in the rule data would be lost: Fluent Bit's ids are hashes of
// the content, so the same id on the same connection is new data that happens
// to be equal.
//
//	begin ─┬─ fresh ──► Append, Flush ─┬─► finish   the print is known from now on
//	       │                           └─► abandon  nothing was stored
//	       ├─ repeat of what is stored at a position: wait for that position
//	       └─ busy: another connection is storing it just now: wait, begin again
//
// The prints live in a window of bounded age and number (seen, in order of
// arrival) and in a file (repeats_file.go) that lags behind; what the file
// lacks after a crash is in the journal, where each record carries its print.

const (
	repeatAge   = time.Hour
	repeatBytes = 64 << 20
	// seenBytes is what one print costs in memory: its slot and its share of
	// the index, and of the buffers for the file.
	seenBytes   = 96
	repeatCount = repeatBytes / seenBytes
)

// A fingerprint, print for short, names one chunk's content and where it came from.
type fingerprint [16]byte

// seen is one stored print.
type seen struct {
	mark   fingerprint
	pos    journal.Position
	at     uint32 // seconds since 1970
	origin uint32 // the connection it was stored from; 0: of an earlier process
	last   uint32 // the connection that repeated it last
	stored uint16 // how many equal chunks came from origin
	used   uint16 // how many of them last has repeated
}

// storing is a print whose chunk is on its way into the journal.
type storing struct {
	conn  uint32
	count int
	floor journal.Position // the journal was durable up to here when it began
	done  chan struct{}    // closed in the end; nil while nobody waits
}

// repeats recognises chunks that were stored before. Safe for concurrent use.
type repeats struct {
	hash cipher.AEAD // used for its authentication tag only: a keyed hash

	mu       sync.Mutex
	slots    slots // a circle once there are repeatCount of them
	oldest   int   // slot of the oldest, when slots is a full circle
	index    printIndex
	touched  uint64 // keeps the compiler from leaving index.touch out
	inflight map[fingerprint]storing
	unsaved  []byte // records for the file
	spare    []byte // what unsaved was before the last save, for its memory

	printers sync.Pool // *printer
	now      func() time.Time
}

type printer struct{ text, sum []byte }

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
		hash:     hash,
		inflight: make(map[fingerprint]storing),
		printers: sync.Pool{New: func() any { return new(printer) }},
		now:      time.Now,
	}, nil
}

// fixedNonce may be used for every print because the tags never leave this
// machine: GMAC is a keyed universal hash then, at memory speed, and whoever
// does not know the key cannot make two chunks collide.
var fixedNonce = make([]byte, 12)

// fingerprint hashes the uncompressed entries as they came: before times of 0 became
// the present time, which is another one when they come again.
func (r *repeats) fingerprint(c *forward.Chunk) fingerprint {
	raw := c.Raw
	if raw == nil {
		raw = c.Entries
	}
	p := r.printers.Get().(*printer)
	defer r.printers.Put(p)
	p.sum = r.hash.Seal(p.sum[:0], fixedNonce, nil, raw)
	peer := c.Peer
	if c.Own {
		peer = ""
	}
	t := p.text[:0]
	t = append(binary.AppendUvarint(t, uint64(len(peer))), peer...)
	t = append(binary.AppendUvarint(t, uint64(len(c.ID))), c.ID...)
	t = append(binary.AppendUvarint(t, uint64(len(c.Tag))), c.Tag...)
	t = append(binary.AppendUvarint(t, uint64(len(raw))), p.sum...)
	p.text = t
	p.sum = r.hash.Seal(p.sum[:0], fixedNonce, nil, t)
	return fingerprint(p.sum)
}

type verdict int

const (
	fresh  verdict = iota // store it, then call finish or abandon
	repeat                // it is stored at a position
	busy                  // another connection is storing it: wait, begin again
)

// A candidate is a chunk that asked for an ack: what to ask of begin, and its
// answers.
type candidate struct {
	mark fingerprint
	conn uint64

	verdict verdict
	pos     journal.Position // of a repeat; to be set before finish
	done    <-chan struct{}  // of a busy one
}

// begin decides for each candidate what it is. floor is a position that all of
// them will lie behind.
func (r *repeats) begin(candidates []candidate, floor journal.Position) {
	horizon := r.now().Add(-repeatAge).Unix()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.touched = r.index.touch(candidates)
	for i := range candidates {
		r.beginOne(&candidates[i], floor, horizon)
	}
}

func (r *repeats) beginOne(c *candidate, floor journal.Position, horizon int64) {
	conn := uint32(c.conn)
	c.verdict = fresh
	if s, ok := r.inflight[c.mark]; ok {
		if s.conn == conn {
			s.count++
		} else {
			if s.done == nil {
				s.done = make(chan struct{})
			}
			c.verdict, c.done = busy, s.done
		}
		r.inflight[c.mark] = s
		return
	}
	if s := r.find(c.mark); s != nil && int64(s.at) >= horizon && s.repeatedBy(conn) {
		c.verdict, c.pos = repeat, s.pos
		return
	}
	r.inflight[c.mark] = storing{conn: conn, count: 1, floor: floor}
}

// finish notes that the fresh ones among the candidates are in the journal.
func (r *repeats) finish(candidates []candidate) {
	at := uint32(r.now().Unix())
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range candidates {
		c := &candidates[i]
		if c.verdict == fresh {
			r.add(c.mark, c.pos, at, uint32(c.conn))
			r.unsaved = appendSeen(r.unsaved, c.mark, c.pos, at)
			r.release(c.mark)
		}
	}
}

// abandon notes that the fresh ones among the candidates were not stored.
func (r *repeats) abandon(candidates []candidate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range candidates {
		if candidates[i].verdict == fresh {
			r.release(candidates[i].mark)
		}
	}
}

func (r *repeats) release(p fingerprint) {
	s := r.inflight[p]
	if s.count--; s.count > 0 {
		r.inflight[p] = s
		return
	}
	delete(r.inflight, p)
	if s.done != nil {
		close(s.done)
	}
}

// find returns what is known of a print.
func (r *repeats) find(p fingerprint) *seen {
	if i := r.index.find(p, &r.slots); i >= 0 {
		return r.slots.at(i)
	}
	return nil
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

// add puts a stored print into the window. The caller holds mu, or is alone.
func (r *repeats) add(p fingerprint, pos journal.Position, at, conn uint32) {
	if s := r.find(p); s != nil {
		if pos <= s.pos && conn == 0 {
			return // the file and the journal both told of it
		}
		if s.origin == conn && s.stored < ^uint16(0) {
			s.stored++
		} else if s.origin != conn {
			*s = seen{mark: p, origin: conn, stored: 1}
		}
		s.pos, s.at = max(s.pos, pos), at
		return
	}
	s := seen{mark: p, pos: pos, at: at, origin: conn, stored: 1}
	i := r.slots.n
	if i < repeatCount {
		r.slots.grow()
	} else {
		i = r.oldest
		r.index.remove(r.slots.at(i).mark, i)
		r.oldest = (i + 1) % repeatCount
	}
	*r.slots.at(i) = s
	r.index.insert(p, i)
}

// age tells how far back the window reaches: repeatAge until more chunks than
// it holds arrive within that time.
func (r *repeats) age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slots.n < repeatCount {
		return repeatAge
	}
	return min(repeatAge, r.now().Sub(time.Unix(int64(r.slots.at(r.oldest).at), 0)))
}

// settled is the position up to which every print is in unsaved or the file,
// given that the journal is durable up to synced: a print whose chunk is still
// being stored holds it back.
func (r *repeats) settled(synced journal.Position) journal.Position {
	for _, s := range r.inflight {
		synced = min(synced, s.floor)
	}
	return synced
}
