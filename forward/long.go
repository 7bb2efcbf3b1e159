// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// A Long is an entry that is too long to be copied: it is read where it stands, in a chunk that is
// compressed or not, as often as it is wanted.
type Long struct {
	Sec  int64 // the time, as of an Entry
	Nsec uint32
	Meta []byte // as of an Entry

	chunk  *Chunk // whose bytes are there until the Long is done with
	at     int64  // where the entry begins, of the uncompressed entries
	size   int64
	record int64 // where the record begins, of the entry
}

// longHead is how much of an entry is looked at for its time and metadata.
const longHead = 64 << 10

// longIn looks whether the entry of which b is the start can be a Long.
func longIn(b []byte) (l *Long, ok bool) {
	b = b[:min(len(b), longHead)]
	s := wire.ShapeOf(b)
	if s.Verdict != wire.VerdictGood && s.Verdict != wire.VerdictTimeless || s.Record >= len(b) ||
		!wire.IsMap(b[s.Record]) {
		return nil, false
	}
	l = &Long{Sec: s.Sec, Nsec: s.Nsec, record: int64(s.Record)}
	if s.Meta > 0 {
		l.Meta = bytes.Clone(b[s.Meta:s.Record])
	}
	return l, true
}

// Size is how long the entry is, in bytes of MessagePack.
func (l *Long) Size() int64 { return l.size }

// Open returns the MessagePack of the record.
func (l *Long) Open() (io.ReadCloser, error) { return l.open(l.record) }

// Raw returns the MessagePack of the entry.
func (l *Long) Raw() (io.ReadCloser, error) { return l.open(0) }

// open returns the entry from an offset on.
func (l *Long) open(from int64) (io.ReadCloser, error) {
	if l.chunk.isPlain() {
		return io.NopCloser(bytes.NewReader(l.chunk.Entries[l.at+from : l.at+l.size])), nil
	}
	z := new(Inflater)
	r := z.stream(l.chunk.Compression, l.chunk.Compressed)
	if _, err := io.CopyN(io.Discard, &r, l.at+from); err != nil {
		z.f.Close()
		return nil, err
	}
	return &longReader{Reader: io.LimitReader(&r, l.size-from), z: z}, nil
}

// isPlain says whether the entries of a chunk are there uncompressed.
func (c *Chunk) isPlain() bool { return c.Entries != nil || c.Compressed == nil }

// longReader lets go of its decompressor.
type longReader struct {
	io.Reader
	z *Inflater
}

func (r *longReader) Close() error {
	r.z.f.Close()
	return nil
}

// Packed returns the entry as a chunk of its own, compressed, which takes little memory if it was
// little when it came.
func (l *Long) Packed() (*Chunk, error) {
	r, err := l.Raw()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		_, err = io.Copy(z, r)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("a long entry: %w", err)
	}
	c := l.chunk
	return &Chunk{
		Tag: c.Tag, Signal: c.Signal, Events: 1, Compressed: out.Bytes(),
		Compression: wire.CompressionGzip.String(),
	}, nil
}
