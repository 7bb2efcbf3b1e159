// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/follow"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/msgpack"
)

// The largest event that a dead letter has as a whole, and what it has of a larger one. A
// forward.Server keeps to the same.
const (
	largestLetter = 64 << 20
	headBytes     = 64 << 10
)

// setAside makes a dead letter of an event that is larger than Config.MaxEvent, and returns when
// that is on the disk. It waits while there is no room, as a chunk waits for room in the journal.
// The same event of a chunk that comes again is the same letter.
func (s *store) setAside(ctx context.Context, e *forward.LargeEvent) error {
	sender := forward.SenderOf(ctx)
	return s.setAsideFrom(ctx, s.accountOf(sender), originOf(sender), e)
}

// setAsideFrom is setAside for an input.
func (s *store) setAsideFrom(ctx context.Context, a *account, from origin, e *forward.LargeEvent) error {
	if e.Size > largestLetter { // an input's of another package may come as a whole
		e.Entry = e.Entry[:min(len(e.Entry), headBytes)]
	}
	entry, reason := e.Entry, fmt.Sprintf("larger than %d bytes", s.maxEvent)
	if !e.Whole() {
		entry = headEvent(e.Sec, e.Nsec, e.Entry, e.Size, reason)
		reason = fmt.Sprintf("%s: %d, of which the first %d are here", reason, e.Size, len(e.Entry))
	}
	c := e.Chunk
	l := letters.Letter{
		Output: a.name, Reason: reason, Time: time.Now(), Position: placeOf(c, from.peer, e.Index),
		Chunk: &forward.Chunk{Tag: c.Tag, Entries: entry, Events: 1},
	}
	return s.persist(ctx, func() error { return s.letters.Put(ctx, l) })
}

// placeOf stands for a letter's position in the journal, where the event is not: the same number
// for the same event of a chunk with an id, another one for each without.
func placeOf(c *forward.Chunk, peer string, index int) uint64 {
	b := binary.AppendUvarint(nil, uint64(index))
	if c.ID == nil {
		b = append(b, rand.Text()...)
	}
	if c.UniqueID {
		peer = ""
	}
	b = append(b, peer...)
	b = append(append(b, 0), c.ID...)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// headEvent is what stands for an event of which only the head is kept.
func headEvent(sec int64, nsec uint32, head []byte, size int64, note string) []byte {
	if sec == 0 && nsec == 0 {
		now := time.Now()
		sec, nsec = now.Unix(), uint32(now.Nanosecond())
	}
	b := forward.AppendEventTime(msgpack.AppendArrayHeader(nil, 2), sec, nsec)
	b = msgpack.AppendMapHeader(b, 3)
	b = msgpack.AppendString(b, "note")
	b = msgpack.AppendString(b, "an event "+note+"; head is how its MessagePack begins")
	b = msgpack.AppendString(b, "size")
	b = msgpack.AppendInt(b, size)
	b = msgpack.AppendString(b, "head")
	return msgpack.AppendBin(b, head)
}

// headOnly cuts what is refused and too long for a letter. That the entries of a record are many is
// no reason to leave some out: only one that is not compressed can be so long.
func headOnly(r *follow.Refused) {
	c := r.Chunk
	if n := int64(len(c.Body())); n > largestLetter {
		r.Reason = fmt.Sprintf("%s; %d bytes, of which the first %d are here", r.Reason, n, headBytes)
		all := forward.ReadEntries(c.Body())
		first, _ := all.Next()
		c.Entries = headEvent(first.Sec, first.Nsec, c.Body()[:headBytes], n, "or several: "+r.Reason)
		c.Compressed, c.Compression, c.Events, r.Entries = nil, "", 1, nil
	}
}
