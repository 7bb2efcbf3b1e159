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
	// seenBytes is what one print costs in memory: the slot and its share of
	// the index.
	seenBytes   = 96
	repeatCount = repeatBytes / seenBytes
)

// A fingerprint, print for short, names one chunk's content and where it came from.
type fingerprint [16]byte

// seen is one stored print.
type seen struct {
	print  fingerprint
	pos    journal.Position
	at     uint32 // seconds since 1970
	origin uint32 // the connection it was stored from; 0: of an earlier process
	last   uint32 // the connection that repeated it last
	stored uint16 // how many equal chunks came from origin
	used   uint16 // how many of them last has repeated
}

// storing is a print whose first chunk is on its way into the journal.
type storing struct {
	conn  uint32
	count int
	floor journal.Position // the journal was durable up to here when it began
	done  chan struct{}
}

// repeats recognises chunks that were stored before. Safe for concurrent use.
type repeats struct {
	hash cipher.AEAD // used for its authentication tag only: a keyed hash

	mu       sync.Mutex
	index    map[fingerprint]uint32 // print → slot
	slots    []seen                 // a circle once it has grown to repeatCount
	oldest   int                    // slot of the oldest, when slots is a full circle
	inflight map[fingerprint]*storing
	unsaved  []byte // records for the file

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
		index:    make(map[fingerprint]uint32),
		inflight: make(map[fingerprint]*storing),
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
	fresh verdict = iota
	repeat
	busy
)

// begin says what to do with a chunk from conn. fresh: store it, then call
// finish or abandon. repeat: it is stored at pos. busy: wait for done, then
// begin again. floor is a position that the chunk will lie behind.
func (r *repeats) begin(p fingerprint, serial uint64, floor journal.Position) (v verdict, pos journal.Position, done <-chan struct{}) {
	conn := uint32(serial)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.inflight[p]; s != nil {
		if s.conn != conn {
			return busy, 0, s.done
		}
		s.count++
		return fresh, 0, nil
	}
	if i, ok := r.index[p]; ok {
		s := &r.slots[i]
		if r.now().Sub(time.Unix(int64(s.at), 0)) <= repeatAge && s.repeatedBy(conn) {
			return repeat, s.pos, nil
		}
	}
	r.inflight[p] = &storing{conn: conn, count: 1, floor: floor, done: make(chan struct{})}
	return fresh, 0, nil
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

// finish notes that the chunk is in the journal at pos.
func (r *repeats) finish(p fingerprint, pos journal.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.inflight[p]
	at := uint32(r.now().Unix())
	r.add(p, pos, at, s.conn)
	r.unsaved = appendSeen(r.unsaved, p, pos, at)
	r.release(p, s)
}

// abandon notes that the chunk was not stored.
func (r *repeats) abandon(p fingerprint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(p, r.inflight[p])
}

func (r *repeats) release(p fingerprint, s *storing) {
	if s.count--; s.count == 0 {
		delete(r.inflight, p)
		close(s.done)
	}
}

// add puts a stored print into the window. The caller holds mu, or is alone.
func (r *repeats) add(p fingerprint, pos journal.Position, at, conn uint32) {
	if i, ok := r.index[p]; ok {
		s := &r.slots[i]
		if pos <= s.pos && conn == 0 {
			return // the file and the journal both told of it
		}
		if s.origin == conn && s.stored < ^uint16(0) {
			s.stored++
		} else if s.origin != conn {
			*s = seen{print: p, origin: conn, stored: 1}
		}
		s.pos, s.at = max(s.pos, pos), at
		return
	}
	s := seen{print: p, pos: pos, at: at, origin: conn, stored: 1}
	if len(r.slots) < repeatCount {
		r.index[p] = uint32(len(r.slots))
		r.slots = append(r.slots, s)
		return
	}
	delete(r.index, r.slots[r.oldest].print)
	r.slots[r.oldest] = s
	r.index[p] = uint32(r.oldest)
	r.oldest = (r.oldest + 1) % len(r.slots)
}

// age tells how far back the window reaches: repeatAge until more chunks than
// it holds arrive within that time.
func (r *repeats) age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.slots) < repeatCount {
		return repeatAge
	}
	return min(repeatAge, r.now().Sub(time.Unix(int64(r.slots[r.oldest].at), 0)))
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
