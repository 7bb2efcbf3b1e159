// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lz4Frames compresses batches into frames of LZ4, straight from one buffer into the other: the
// client's own way copies twice, and adds a checksum of what the batch has a checksum of already.
//
//	magic │ flags │ largest block │ their checksum │ (size │ block) … │ 0
//	4       1       1               1                4                  4     bytes
//
// Blocks are independent. One that would not be smaller stands as it is, marked in its size.
type lz4Frames struct {
	compressors sync.Pool // of *lz4.Compressor
}

const (
	lz4Head  = "\x04\x22\x4d\x18\x60\x50\xfb"
	lz4Block = 256 << 10 // as the head says: at once in the caches of a core, here and at the broker
	lz4Plain = 1 << 31
)

func newLZ4() *lz4Frames {
	return &lz4Frames{sync.Pool{New: func() any { return new(lz4.Compressor) }}}
}

// Compress implements kgo.Compressor. What it returns may lie in dst.
func (f *lz4Frames) Compress(dst *bytes.Buffer, src []byte, _ ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	c := f.compressors.Get().(*lz4.Compressor)
	defer f.compressors.Put(c)
	dst.Grow(len(lz4Head) + 4 + (len(src)/lz4Block+1)*4 + lz4.CompressBlockBound(len(src)))
	out := append(dst.AvailableBuffer(), lz4Head...)
	for block := range slices.Chunk(src, lz4Block) {
		at := len(out) + 4
		out = slices.Grow(out, 4+lz4.CompressBlockBound(len(block)))
		n, err := c.CompressBlock(block, out[at:cap(out)])
		size := uint32(n)
		if err != nil || n == 0 || n >= len(block) {
			n = copy(out[at:cap(out)], block)
			size = uint32(n) | lz4Plain
		}
		binary.LittleEndian.PutUint32(out[at-4:at], size)
		out = out[:at+n]
	}
	return binary.LittleEndian.AppendUint32(out, 0), kgo.CodecLz4
}
