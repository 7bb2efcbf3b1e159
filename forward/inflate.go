// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest zstd window that is accepted: what RFC 8878 asks every decoder to have. Larger ones need more memory than a
// connection may claim.
const maxWindow = 8 << 20

// alienMost is how much of what is no entry is looked at before the rest is not even decompressed.
const alienMost = 4096

// inflateTurn is how much is decompressed before others get their turn: about a millisecond.
const inflateTurn = 1 << 20

// lookStep is how much is decompressed before it is looked at: little enough to be still in the cache, and so much that few entries are cut by its end.
const lookStep = 128 << 10

// inflaters are the decompressors of one group; they are made when they are first needed and live as long as the group in its pool.
type inflaters struct {
	src  bytes.Reader
	gzip *gzip.Reader
	zstd *zstd.Decoder
}

// open returns a reader of src decompressed: several gzip members or zstd frames in a row are one stream (docs/forward.md rule 17).
func (f *inflaters) open(kind compression, src []byte) (io.Reader, error) {
	f.src.Reset(src)
	if kind == gzipped {
		if f.gzip == nil {
			z, err := gzip.NewReader(&f.src)
			if err != nil {
				return nil, err
			}
			f.gzip = z
			return z, nil
		}
		return f.gzip, f.gzip.Reset(&f.src)
	}
	if f.zstd == nil {
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecodeBuffersBelow(0))
		if err != nil {
			return nil, err
		}
		f.zstd = z
	}
	return f.zstd, f.zstd.Reset(&f.src)
}

// done lets go of the bytes that were decompressed.
func (f *inflaters) done() { f.src.Reset(nil) }

// inflate decompresses the entries of the message in progress into a buffer of their own, and looks at them as they come out, so that
// what is no stream of entries is refused before much of it was made. The buffer, which may be nil, is the caller's, also after an error.
func (c *conn) inflate(kind compression, src []byte) (buf *buffer, n int, ck check, err error) {
	if len(src) == 0 { // no member at all
		return nil, 0, ck, nil
	}
	most := c.s.maxDecompressed
	r, err := c.g.inflate.open(kind, src)
	if err != nil {
		return nil, 0, ck, &fault{Corrupt, err}
	}
	defer c.g.inflate.done()
	claim := claimed(kind, src) // makes a step smaller, never larger
	if claim > most {
		claim = 0
	}
	step := func(n int64) int {
		if claim > 0 && (buf == nil || claim > buf.size()) {
			n = min(n, max(claim, readSize))
		}
		return bufferSize(min(n, most+1))
	}
	first := max(4*int64(len(src)), readSize)
	if last := int64(c.inflated); last > first && c.s.mem.used.Load()+last <= c.s.mem.limit/2 {
		first = last // what the connection's chunks become, as a rule
	}
	buf, err = c.extra(step(first))
	for turn, looked := 0, 0; err == nil; {
		if n-turn > inflateTurn { // those with little to do come first
			turn = n
			runtime.Gosched()
		}
		into := buf.b[n:]
		full := len(into) == 0
		if full { // that may have been all
			into = c.tiny[:]
		}
		var k int
		k, err = r.Read(into)
		if full && k > 0 {
			var gerr error
			if buf, gerr = c.growExtra(buf, n, step(2*int64(n))); gerr != nil {
				return buf, n, ck, gerr
			}
			copy(buf.b[n:], into[:k])
		}
		n += k
		if int64(n) > most {
			return buf, n, ck, faultf(Bomb, "more than %d bytes from %d compressed ones", most, len(src))
		}
		if err == nil && n-looked < lookStep {
			continue
		}
		looked = n
		if bad := ck.run(buf.b[:n], noMost, &c.dec.scan, most); bad != nil {
			return buf, n, ck, scanFault(bad, InvalidChunk)
		}
		if ck.odd > alienMost && ck.alien() {
			return buf, n, ck, &fault{InvalidChunk, errAlien}
		}
		if errors.Is(err, io.EOF) {
			c.inflated = min(n+n/8, startBuffer)
			return buf, n, ck, nil
		}
		if err != nil {
			return buf, n, ck, &fault{Corrupt, err}
		}
	}
	return buf, n, ck, err
}

// claimed is how long compressed bytes say that they will be, 0 if they do not say: the last gzip member says it of itself, a zstd frame may.
func claimed(kind compression, src []byte) int64 {
	if kind == gzipped {
		if len(src) < 18 {
			return 0
		}
		return int64(binary.LittleEndian.Uint32(src[len(src)-4:]))
	}
	var h zstd.Header
	if h.Decode(src[:min(len(src), zstd.HeaderMaxSize)]) != nil || !h.HasFCS || h.FrameContentSize > largestChunk {
		return 0
	}
	return int64(h.FrameContentSize)
}
