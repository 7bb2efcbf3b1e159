// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// ErrMalformed says that bytes are no Forward message, or not one of the shape that was asked for.
var ErrMalformed = errors.New("forward: malformed message")

// A Chunk is entries under one tag: the unit that is sent, acked, stored and resent. It has what
// travels and nothing else: what it was received with is reached by [SenderOf].
//
// A Server lends its chunks: ID and Entries lie in the connection's read buffer and are valid only
// during the handler's call.
type Chunk struct {
	// Tag is where the events belong. Any bytes, at most MaxTag of them.
	Tag string
	// ID is the chunk id as it came, without being looked at; nil when no ack was asked for, empty
	// when the empty id was.
	ID []byte
	// IDBin says that the id came as bin, and its ack goes back as bin.
	IDBin bool
	// UniqueID says that the id is random and names these entries for ever: the sender marked it
	// with the option key "spillway".
	UniqueID bool
	// Events is the number of entries.
	Events int
	// Entries are packed entries one after another, uncompressed: every one is [time, map] or
	// [[time, map], map], with a time that is not 0.
	Entries []byte
	// Compressed are the entries as they came, by Compression ("gzip", "zstd"); nil when they came
	// uncompressed, or when Entries are not exactly what comes out of them. A chunk that Parse read
	// has them alone, and no Entries before Inflater.Inflate.
	Compressed  []byte
	Compression string
	// Signal is option fluent_signal: 0 logs, 1 metrics, 2 traces. A Server hands on logs only.
	Signal int
	// Sent is how the chunk was sent, where a Server has changed it; nil where it is as it came,
	// and for a chunk that Parse read. To compare a chunk with one that came before, compare
	// what was sent: the same chunk comes with another time of arrival, and two tags may become
	// one.
	Sent *Sent
}

// Sent is how a chunk was sent, as far as the Chunk is not that.
type Sent struct {
	// Tag is the tag that the sender gave, where its Endpoint changed it; else empty. Chunks
	// gathered of messages without an id have none.
	Tag string
	// Entries are the uncompressed entries as they came, before invalid and nil ones were left out
	// and times of 0 resolved; nil when they are those of the chunk, or there are Compressed ones.
	Entries []byte
	// Compressed are the entries as they came, by Compression, of a chunk that Server.MaxEvent
	// keeps from being decompressed as a whole, and of which some entries could not stay.
	Compressed  []byte
	Compression string
	// Invalid is the number of entries that were left out because their time or record is of the
	// wrong type, Skipped of those without a record.
	Invalid, Skipped int
}

// Clone returns a copy of the chunk that shares no bytes with it, for a caller that keeps it longer
// than it is lent.
func (c *Chunk) Clone() *Chunk {
	d := *c
	d.ID, d.Entries, d.Compressed = bytes.Clone(c.ID), bytes.Clone(c.Entries), bytes.Clone(c.Compressed)
	if c.Sent != nil {
		sent := *c.Sent
		sent.Entries, sent.Compressed = bytes.Clone(sent.Entries), bytes.Clone(sent.Compressed)
		d.Sent = &sent
	}
	return &d
}

// idChars is the length of an id that NewID makes.
const idChars = 24

// AppendID appends a new chunk id: 128 random bits as 24 characters of base64 (docs/forward.md rule
// 45).
func AppendID(dst []byte) []byte {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails, see crypto/rand
	return base64.StdEncoding.AppendEncode(dst, bits[:])
}

// NewID returns a new chunk id, see AppendID.
func NewID() []byte { return AppendID(make([]byte, 0, idChars)) }

// AppendHead appends what stands before the entries in a PackedForward message: the array's header,
// the tag, the header of a bin. head + Body + tail is one message, as it travels and as it is
// stored.
func (c *Chunk) AppendHead(dst []byte) []byte {
	return wire.AppendHead(dst, c.Tag, len(c.Body()))
}

// Body returns the entries as they travel and are stored: Compressed where there are such, else
// Entries.
func (c *Chunk) Body() []byte {
	if c.Compressed != nil {
		return c.Compressed
	}
	return c.Entries
}

// AppendTail appends what stands behind the entries: the option map with chunk, size, compressed,
// fluent_signal and spillway, each only where it says something. A program that stores chunks may
// add keys of its own: the map has less than 14 pairs, so its first byte is 0x80 and their number,
// and Parse steps over what it does not know.
func (c *Chunk) AppendTail(dst []byte) []byte {
	how := ""
	if c.Compressed != nil {
		how = c.Compression
	}
	return c.appendTail(dst, how)
}

func (c *Chunk) appendTail(dst []byte, compressed string) []byte {
	o := wire.Option{ID: c.ID, IDBin: c.IDBin, Size: c.Events, Signal: c.Signal, UniqueID: c.UniqueID}
	return o.Append(dst, compressed)
}

// ParseChunk reads back what AppendHead, Body and AppendTail wrote. See Chunk.Parse.
func ParseChunk(b []byte) (*Chunk, error) {
	c := new(Chunk)
	if err := c.Parse(b); err != nil {
		return nil, err
	}
	return c, nil
}

// Parse reads one PackedForward message that is the whole of b, as AppendHead, Body and AppendTail
// wrote it, into c; all of c is replaced. ID, Entries and Compressed alias b. A tag equal to
// the one that c had is not allocated anew. The entries are not looked at: read them with
// ReadEntries. The error wraps ErrMalformed.
func (c *Chunk) Parse(b []byte) error {
	tag := c.Tag
	*c = Chunk{}
	t, n, err := msgpack.ReadToken(b)
	if err != nil || t.Kind != msgpack.KindArray || t.Len < 2 || t.Len > 3 {
		return fmt.Errorf("%w: no array of two or three", ErrMalformed)
	}
	elements := t.Len
	name, _, k, err := msgpack.ReadBytes(b[n:])
	if err != nil {
		return fmt.Errorf("%w: tag: %w", ErrMalformed, err)
	}
	n += k
	entries, _, k, err := msgpack.ReadBytes(b[n:])
	if err != nil {
		return fmt.Errorf("%w: entries: %w", ErrMalformed, err)
	}
	n += k
	var o wire.Option
	if elements == 3 {
		k, err := msgpack.Skip(b[n:])
		if err != nil {
			return fmt.Errorf("%w: option: %w", ErrMalformed, err)
		}
		o.Parse(b[n : n+k])
		n += k
	}
	if n != len(b) {
		return fmt.Errorf("%w: %d bytes behind it", ErrMalformed, len(b)-n)
	}
	how := o.Compression()
	if how == wire.UnknownCompression {
		return fmt.Errorf("%w: compressed as %q", ErrMalformed, wire.Shorten(o.Compressed))
	}
	c.Tag = keep(tag, name)
	c.ID, c.IDBin, c.UniqueID, c.Signal = o.ID, o.IDBin, o.UniqueID, o.Signal
	c.Events = o.Size
	if how == wire.CompressionPlain || len(entries) == 0 {
		c.Entries = entries
	} else {
		c.Compressed, c.Compression = entries, how.String()
	}
	return nil
}

// keep returns b as a string, and the old one where it is the same.
func keep(old string, b []byte) string {
	if old == string(b) {
		return old
	}
	return string(b)
}
