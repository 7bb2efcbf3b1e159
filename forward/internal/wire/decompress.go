// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest zstd window that is accepted: what RFC 8878 asks every decoder to have.
// Larger ones need more memory than a connection may claim.
const MaxWindow = 8 << 20

// Inflaters are decompressors; they are made when they are first needed. A server has few: one may
// need megabytes.
type Inflaters struct {
	src  bytes.Reader
	gzip *gzip.Reader
	zstd *zstd.Decoder
	wide bool // zstd has had a window beyond keptWindow
}

// Open returns a reader of src decompressed: several gzip members or zstd frames in a row are one
// stream (docs/forward.md rule 17).
func (f *Inflaters) Open(kind Compression, src []byte) (io.Reader, error) {
	f.src.Reset(src)
	if kind == CompressionGzip {
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
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(MaxWindow),
			zstd.WithDecodeBuffersBelow(0))
		if err != nil {
			return nil, err
		}
		f.zstd = z
	}
	var h zstd.Header
	f.wide = h.Decode(src[:min(len(src), zstd.HeaderMaxSize)]) != nil || h.WindowSize > keptWindow ||
		len(src) > keptWindow
	return f.zstd, f.zstd.Reset(&f.src)
}

// Done lets go of the bytes that were decompressed, and of a decompressor that has become large.
func (f *Inflaters) Done() {
	f.src.Reset(nil)
	if f.wide {
		f.zstd.Close()
		f.zstd, f.wide = nil, false
	}
}

// keptWindow is the largest zstd window for which a decompressor is kept.
const keptWindow = 1 << 20

// Claimed is how long compressed bytes say that they will be, 0 if they do not say: the last gzip
// member says it of itself, a zstd frame may.
func Claimed(kind Compression, src []byte) int64 {
	if kind == CompressionGzip {
		if len(src) < 18 {
			return 0
		}
		return int64(binary.LittleEndian.Uint32(src[len(src)-4:]))
	}
	var h zstd.Header
	if h.Decode(src[:min(len(src), zstd.HeaderMaxSize)]) != nil || !h.HasFCS || h.FrameContentSize > LargestChunk {
		return 0
	}
	return int64(h.FrameContentSize)
}

// Close ends the decompressors.
func (f *Inflaters) Close() {
	if f.zstd != nil {
		f.zstd.Close()
	}
	*f = Inflaters{}
}
