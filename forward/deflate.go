// SPDX-License-Identifier: Apache-2.0

package forward

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

var gzippers = sync.Pool{New: func() any {
	g := new(gzipper)
	g.z = gzip.NewWriter(&g.out)
	return g
}}

// zstder is made when first needed; EncodeAll may be called by many goroutines.
var zstder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
})

// deflate compresses entries. free gives back what it returned.
func deflate(how string, entries []byte) (out []byte, free func(), err error) {
	switch how {
	case "":
		return entries, func() {}, nil
	case "gzip":
		g := gzippers.Get().(*gzipper)
		g.out.Reset()
		g.z.Reset(&g.out)
		if _, err = g.z.Write(entries); err == nil {
			err = g.z.Close()
		}
		return g.out.Bytes(), func() {
			if g.out.Cap() <= keptBuffer {
				gzippers.Put(g)
			}
		}, err
	case "zstd":
		z, err := zstder()
		if err != nil {
			return nil, nil, err
		}
		return z.EncodeAll(entries, nil), func() {}, nil
	}
	return nil, nil, fmt.Errorf("no compression %q: gzip or zstd", how)
}
