// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
)

// inflaterKeeps is the largest buffer that an Inflater keeps for its next chunk.
const inflaterKeeps = 4 << 20

// An Inflater undoes the compression of chunks that Parse read. Its zero value works; it keeps its
// decompressors and a buffer. It is not for several goroutines at once.
type Inflater struct {
	f   wire.Inflaters
	buf []byte
}

// Inflate fills in c.Entries from c.Compressed, if c has them compressed only. They are valid until
// the next call. At most 1 GiB is made, which is what a Server takes at most. The error wraps
// ErrMalformed.
func (z *Inflater) Inflate(c *Chunk) error { return z.inflate(c, wire.LargestChunk) }

// InflateLimit is Inflate that makes at most so many bytes.
func (z *Inflater) InflateLimit(c *Chunk, limit int) error {
	return z.inflate(c, min(limit, wire.LargestChunk))
}

func (z *Inflater) inflate(c *Chunk, limit int) error {
	if c.Compressed == nil || c.Entries != nil {
		return nil
	}
	if cap(z.buf) > inflaterKeeps {
		z.buf = nil
	}
	if z.buf == nil {
		z.buf = make([]byte, budget.Base)
	}
	z.buf = z.buf[:cap(z.buf)]
	kind := wire.CompressionOf(c.Compression)
	r, err := z.f.Open(kind, c.Compressed)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrMalformed, c.Compression, err)
	}
	defer z.f.Done()
	claim := int(min(wire.Claimed(kind, c.Compressed), int64(limit))) // makes a step smaller, never larger
	for n := 0; ; {
		if n == len(z.buf) {
			end := limit
			if n <= claim {
				end = claim
			}
			larger := make([]byte, n+min(n, max(end-n, 0)+1)) // the last one shows whether that is all
			copy(larger, z.buf)
			z.buf = larger
		}
		k, err := r.Read(z.buf[n:])
		if n += k; n > limit {
			return fmt.Errorf("%w: more than %d bytes from %d of %s", ErrMalformed, limit, len(c.Compressed),
				c.Compression)
		}
		if errors.Is(err, io.EOF) {
			c.Entries = z.buf[:n:n]
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrMalformed, c.Compression, err)
		}
	}
}

// Raw returns the uncompressed entries of a chunk as they were sent (Chunk.Sent), as a stream, for
// chunks that are compressed. It is valid until the next use of z. An error of the compressed bytes
// is the reader's; it wraps ErrMalformed.
func (z *Inflater) Raw(c *Chunk) io.Reader {
	switch {
	case c.Sent != nil && c.Sent.Compressed != nil:
		m := z.stream(c.Sent.Compression, c.Sent.Compressed)
		return &m
	case c.Sent != nil && c.Sent.Entries != nil:
		return bytes.NewReader(c.Sent.Entries)
	case c.Entries != nil || c.Compressed == nil:
		return bytes.NewReader(c.Entries)
	}
	m := z.stream(c.Compression, c.Compressed)
	return &m
}

// stream decompresses src.
func (z *Inflater) stream(how string, src []byte) malformed {
	r, err := z.f.Open(wire.CompressionOf(how), src)
	if err != nil {
		err = fmt.Errorf("%w: %s: %w", ErrMalformed, how, err)
	}
	return malformed{how: how, r: r, err: err}
}

// malformed is a reader whose errors wrap ErrMalformed.
type malformed struct {
	how string
	r   io.Reader
	err error
}

func (m *malformed) Read(b []byte) (n int, err error) {
	if m.err == nil {
		n, m.err = m.r.Read(b)
		if m.err != nil && !errors.Is(m.err, io.EOF) {
			m.err = fmt.Errorf("%w: %s: %w", ErrMalformed, m.how, m.err)
		}
	}
	return n, m.err
}
