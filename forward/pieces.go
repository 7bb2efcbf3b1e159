// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spillwaylog/spillway/forward/internal/budget"
	"github.com/spillwaylog/spillway/forward/internal/wire"
	"github.com/spillwaylog/spillway/msgpack"
)

// Pieces are the entries of a chunk, uncompressed, some at a time, so that a chunk of any length
// takes little memory. Its zero value works. How a chunk is cut depends on nothing but its entries
// and the size of a piece.
type Pieces struct {
	// Large is called before memory is taken for an entry that is larger than a piece; nil: nothing
	// is.
	Large func()
	// MaxCopied is the longest entry of a compressed chunk that is copied, and of one that is not
	// compressed none that is larger than a piece is; 0: any is copied.
	MaxCopied int
	// Found is the entry that the last Next has come to, if that is larger than a piece and
	// MaxCopied is set. What was not copied is in it alone.
	Found *Long

	r      io.Reader // plain or packed
	plain  bytes.Reader
	packed malformed
	size   int
	buf    []byte // read and not returned
	eof    bool
	whole  bool // nothing was returned yet
	scan   msgpack.Scanner
	chunk  *Chunk
	at     int64 // of buf, in the entries
}

// Begin begins to read the entries of a chunk, size bytes at a time, as long as its bytes are
// there, and until z is used for something else.
func (p *Pieces) Begin(z *Inflater, c *Chunk, size int) {
	p.size, p.eof, p.whole = size, false, true
	p.chunk, p.at, p.Found = c, 0, nil
	if p.buf = p.buf[:0]; cap(p.buf) > 2*inflaterKeeps {
		p.buf = nil
	}
	if c.isPlain() {
		p.plain.Reset(c.Entries)
		p.r = &p.plain
		return
	}
	p.packed = z.stream(c.Compression, c.Compressed)
	p.r = &p.packed
}

// Next replaces dst by the next entries, size bytes of them or one that is larger, and says how
// many they are. last says that there are no more; what is all of a chunk is not looked at, and n
// is 0 then. The error wraps ErrMalformed: what stands before it was returned, what follows cannot
// be read.
func (p *Pieces) Next(dst []byte) (entries []byte, n int, last bool, err error) {
	dst = dst[:0]
	p.Found = nil
	large := false
	ck := wire.Check{}
	defer ck.Drop()
	for limit := p.size; ; limit += max(limit/4, p.size) {
		if err := p.fill(limit); err != nil {
			return dst, 0, true, err
		}
		if p.whole && p.eof && len(p.buf) <= p.size {
			dst = append(dst, p.buf...)
			p.buf = p.buf[:0]
			return dst, 0, true, nil
		}
		p.whole = false
		seen := p.buf[:min(len(p.buf), limit)] // more may have been read with the end of a large entry
		if err := ck.Run(seen, wire.NoLimit, &p.scan, math.MaxInt32); err != nil {
			return dst, 0, true, fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if ck.Pos > 0 || p.eof && len(seen) == len(p.buf) {
			break
		}
		if p.MaxCopied > 0 && len(p.buf) >= min(longHead, p.MaxCopied) {
			if done, last, err := p.long(); done || err != nil {
				return dst, 1, last, err
			}
		}
		if !large && p.Large != nil {
			p.Large()
		}
		large = true
	}
	end, n := int(ck.Pos), int(ck.Values())
	if large && n > 1 { // the large one alone
		r := EntryReader{rest: p.buf}
		if e, ok := r.Next(); ok {
			end, n = len(e.Raw), 1
		}
	}
	if end == 0 && len(p.buf) > 0 {
		return dst, 0, true, fmt.Errorf("%w: the entries break off within one", ErrMalformed)
	}
	p.at += int64(end)
	if large {
		dst, p.buf = p.buf[:end:end], slices.Clone(p.buf[end:])
		if l, ok := longIn(dst); ok && p.MaxCopied > 0 {
			l.chunk, l.size = &Chunk{Tag: p.chunk.Tag, Signal: p.chunk.Signal, Entries: dst, Events: 1}, int64(end)
			p.Found = l
		}
	} else {
		dst = append(dst, p.buf[:end]...)
		p.buf = p.buf[:copy(p.buf, p.buf[end:])]
	}
	if len(p.buf) == 0 { // whether there is more
		if err := p.fill(1); err != nil {
			p.packed.err = err // for the next
			return dst, n, false, nil
		}
	}
	return dst, n, p.eof && len(p.buf) == 0, nil
}

// long looks for the end of the entry that begins in buf and is longer than it, if that is one that
// need not be copied, and goes on behind it.
func (p *Pieces) long() (done, last bool, err error) {
	if !p.keeps() {
		return false, false, nil
	}
	l, ok := longIn(p.buf)
	if !ok {
		return false, false, nil
	}
	var scan msgpack.Scanner
	scan.Reset(wire.Claims(wire.MaxDepth+1, math.MaxInt32))
	for {
		n, done, err := scan.Scan(p.buf)
		l.size += int64(n)
		p.buf = p.buf[:copy(p.buf, p.buf[n:])]
		switch {
		case err != nil:
			return false, true, fmt.Errorf("%w: %w", ErrMalformed, err)
		case !done && p.eof:
			return false, true, fmt.Errorf("%w: the entries break off within one", ErrMalformed)
		}
		if len(p.buf) == 0 {
			if cap(p.buf) > inflaterKeeps {
				p.buf = nil
			}
			if err := p.fill(longHead); err != nil && !done {
				return false, true, err
			} else if err != nil {
				p.packed.err = err // for the next
			}
		}
		if done {
			break
		}
	}
	l.chunk, l.at = p.chunk, p.at
	p.at += l.size
	p.Found = l
	return true, p.eof && len(p.buf) == 0, nil
}

// keeps says whether what is in buf, the start of an entry, is to be left where it stands: it is
// longer than MaxCopied, or it need not be found again by decompressing what is before it.
func (p *Pieces) keeps() bool { return p.chunk.isPlain() || len(p.buf) > p.MaxCopied }

// fill reads until there are n bytes, or all.
func (p *Pieces) fill(n int) error {
	for !p.eof && len(p.buf) < n {
		if len(p.buf) == cap(p.buf) {
			room := make([]byte, len(p.buf), min(n, max(2*len(p.buf), budget.Base)))
			copy(room, p.buf)
			p.buf = room
		}
		k, err := p.r.Read(p.buf[len(p.buf):min(cap(p.buf), n)])
		p.buf = p.buf[:len(p.buf)+k]
		if errors.Is(err, io.EOF) {
			p.eof = true
		} else if err != nil {
			return err
		}
	}
	return nil
}
