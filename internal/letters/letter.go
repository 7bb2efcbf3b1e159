// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/msgpack"
)

// ErrMalformed says that a record is no letter.
var ErrMalformed = errors.New("letters: no letter")

// A Letter is what one output refused of one record.
type Letter struct {
	Output   string    // the output's name
	Reason   string    // why it was refused, in one line
	Time     time.Time // when; Put takes the present time if it is zero
	Position uint64    // end of the record in the collector's journal
	// Entries says which entries of that record, ascending from 0; nil: all. What an output refused
	// of what steps had left of the record is numbered in that.
	Entries []int
	// Chunk has the tag and the refused entries only: uncompressed, or as they came if these are
	// all. Its id and print do not matter to Put.
	Chunk *forward.Chunk
}

// Events is the number of entries.
func (l *Letter) Events() int { return l.Chunk.Events }

// Entry returns which entry of the collector's record the i-th one of the letter is.
func (l *Letter) Entry(i int) int {
	if i < len(l.Entries) {
		return l.Entries[i]
	}
	return i
}

// A key is what letters are compared by.
type key [16]byte

// maxFlat is up to what length entries that are compressed are uncompressed to be compared.
const maxFlat = 64 << 20

// keyOf hashes what makes a letter that one. Entries count uncompressed, for they may be so the
// next time. Those that cannot be uncompressed, or become too long, count as they are.
func keyOf(l *Letter, z *forward.Inflater) key {
	c := *l.Chunk
	body := c.Body()
	if c.Entries != nil {
		body = c.Entries
	} else if z.InflateLimit(&c, maxFlat) == nil {
		body = c.Entries
	}
	h := sha256.New()
	var b []byte
	b = appendText(b, l.Output)
	b = binary.AppendUvarint(b, l.Position)
	b = binary.AppendVarint(b, int64(len(l.Entries)))
	for _, n := range l.Entries {
		b = binary.AppendVarint(b, int64(n))
	}
	b = appendText(b, c.Tag)
	h.Write(b)
	h.Write(body)
	return key(h.Sum(b[:0])[:16])
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// idOf is the chunk id of a letter in a store: it looks like one of forward.NewID, and is as
// unlikely to be used for anything else.
func idOf(store, k key) []byte {
	h := sha256.Sum256(append(append([]byte("letter\x00"), store[:]...), k[:]...))
	return base64.StdEncoding.AppendEncode(nil, h[:16])
}

// letterKey is the option key under which a record says that it is a letter.
const letterKey = "letter"

// encode returns a letter as a record, in parts.
func encode(l *Letter, k key, id []byte) (head, body, tail []byte) {
	c := *l.Chunk
	c.ID, c.IDBin, c.UniqueID = id, false, true
	if l.Entries != nil {
		c.Events = len(l.Entries)
		if c.Entries != nil { // what is compressed may be all of them
			c.Compressed, c.Compression = nil, ""
		}
	}
	option := c.AppendTail(nil)
	t, n, _ := msgpack.ReadToken(option) // it begins with the header of a map
	tail = msgpack.AppendMapHeader(nil, t.Len+1)
	tail = append(tail, option[n:]...)
	tail = msgpack.AppendString(tail, letterKey)
	return c.AppendHead(nil), c.Body(), appendLetter(tail, l, k)
}

func appendLetter(b []byte, l *Letter, k key) []byte {
	n := 5
	if l.Entries != nil {
		n++
	}
	b = msgpack.AppendMapHeader(b, n)
	b = msgpack.AppendString(b, "output")
	b = msgpack.AppendString(b, l.Output)
	b = msgpack.AppendString(b, "reason")
	b = msgpack.AppendString(b, l.Reason)
	b = msgpack.AppendString(b, "time")
	b = msgpack.AppendInt(b, l.Time.UnixNano())
	b = msgpack.AppendString(b, "position")
	b = msgpack.AppendUint(b, l.Position)
	if l.Entries != nil {
		b = msgpack.AppendString(b, "entries")
		b = msgpack.AppendArrayHeader(b, len(l.Entries))
		for _, n := range l.Entries {
			b = msgpack.AppendUint(b, uint64(n))
		}
	}
	b = msgpack.AppendString(b, "key")
	return msgpack.AppendBin(b, k[:])
}

// decode reads a record. The chunk aliases b, and its entries are not looked at. The error wraps
// ErrMalformed; what could be read is there all the same.
func decode(b []byte) (l Letter, k key, err error) {
	k, err = l.decode(b)
	return l, k, err
}

// decode replaces all of l, and uses the memory of what it had.
func (l *Letter) decode(b []byte) (k key, err error) {
	before := *l
	*l = Letter{Chunk: before.Chunk}
	if l.Chunk == nil {
		l.Chunk = new(forward.Chunk)
	}
	if err := l.Chunk.Parse(b); err != nil {
		return k, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	found := false
	err = eachPair(optionOf(b), func(name, value []byte) error {
		if string(name) != letterKey {
			return nil
		}
		found = true
		return l.parse(value, &k, &before)
	})
	if err == nil && !found {
		err = errors.New("nothing says that it is one")
	}
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return k, nil
}

// keep returns b as a string, and the old one where it is the same.
func keep(old string, b []byte) string {
	if old == string(b) {
		return old
	}
	return string(b)
}

// optionOf is the third element of a message that Parse has read, empty if it has two.
func optionOf(b []byte) []byte {
	_, at, _ := msgpack.ReadToken(b)
	for range 2 {
		n, err := msgpack.Skip(b[at:])
		if err != nil {
			return nil
		}
		at += n
	}
	return b[at:]
}

// parse reads the value of the option.
func (l *Letter) parse(b []byte, k *key, before *Letter) error {
	return eachPair(b, func(name, value []byte) (err error) {
		var text []byte
		switch string(name) {
		case "output":
			text, err = readBytes(value)
			l.Output = keep(before.Output, text)
		case "reason":
			text, err = readBytes(value)
			l.Reason = keep(before.Reason, text)
		case "time":
			var ns int64
			ns, err = readInt(value)
			l.Time = time.Unix(0, ns).UTC()
		case "position":
			l.Position, err = readUint(value)
		case "entries":
			l.Entries = []int{}
			err = eachElement(value, func(v []byte) error {
				n, err := readUint(v)
				if err == nil && n > math.MaxInt32 {
					err = errKind
				}
				l.Entries = append(l.Entries, int(n))
				return err
			})
		case "key":
			if text, err = readBytes(value); err == nil && len(text) != len(k) {
				err = errKind
			}
			copy(k[:], text)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	})
}
