// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A compressor compresses entries as one gzip member or one zstd frame.
type compressor struct {
	gzip *gzip.Writer
	zstd *zstd.Encoder
}

func newCompressor(how string) (*compressor, error) {
	if how == "gzip" {
		return &compressor{gzip: gzip.NewWriter(nil)}, nil
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	return &compressor{zstd: z}, err
}

// compress appends what in becomes.
func (c *compressor) compress(dst, in []byte) ([]byte, error) {
	if c.zstd != nil {
		return c.zstd.EncodeAll(in, dst), nil
	}
	out := bytes.NewBuffer(dst)
	c.gzip.Reset(out)
	if _, err := c.gzip.Write(in); err != nil {
		return dst, err
	}
	err := c.gzip.Close()
	return out.Bytes(), err
}
