// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// gzipper compresses into a buffer of its own.
type gzipper struct {
	out bytes.Buffer
	z   *gzip.Writer
}

// gzipperKeeps is the largest buffer that a gzipper keeps for its next chunk.
const gzipperKeeps = 1 << 20

var gzippers = sync.Pool{New: func() any {
	g := new(gzipper)
	g.z = gzip.NewWriter(&g.out)
	return g
}}

// Deflater compresses what one client sends. It may be used by many goroutines.
type Deflater struct {
	How  string // as Client.Compress
	once sync.Once
	zstd *zstd.Encoder
	err  error
}

// Check says whether deflate can work.
func (d *Deflater) Check() error {
	switch d.How {
	case "", "gzip":
		return nil
	case "zstd":
		d.once.Do(func() {
			d.zstd, d.err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		})
		return d.err
	}
	return fmt.Errorf("no compression %q: gzip or zstd", d.How)
}

// Deflate compresses entries. free gives back what it returned.
func (d *Deflater) Deflate(entries []byte) (out []byte, free func(), err error) {
	if err := d.Check(); err != nil {
		return nil, nil, err
	}
	switch d.How {
	case "gzip":
		g := gzippers.Get().(*gzipper)
		g.out.Reset()
		g.z.Reset(&g.out)
		if _, err = g.z.Write(entries); err == nil {
			err = g.z.Close()
		}
		return g.out.Bytes(), func() {
			if g.out.Cap() <= gzipperKeeps {
				gzippers.Put(g)
			}
		}, err
	case "zstd":
		return d.zstd.EncodeAll(entries, nil), func() {}, nil
	}
	return entries, func() {}, nil
}
