// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A part is what a file held when the merge began, or a piece of the spool. It is held open, or
// opened anew for each read.
type part struct {
	file     *os.File // nil: not held open
	spool    *spool   // counts what was read; file may be its own
	path     string
	at, size int64 // where it is read next, and where it ends
	same     os.FileInfo
	err      error // what ended its unpacking, told at the end
}

var (
	errOther   = errors.New("another file has taken its place, the rest of it is missing")
	errShorter = errors.New("it became shorter, the rest of it is missing")
)

func (p *part) Read(b []byte) (int, error) {
	if p.spool.check != nil {
		if err := p.spool.check(); err != nil {
			return 0, err
		}
	}
	if p.at >= p.size {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n, err := p.readAt(b[:min(int64(len(b)), p.size-p.at)], p.at)
	p.at += int64(n)
	p.spool.done += int64(n)
	if n > 0 {
		err = nil // it is told by the next read
	}
	return n, err
}

// readAt reads less than asked for only with an error.
func (p *part) readAt(b []byte, at int64) (int, error) {
	f := p.file
	if f == nil {
		var err error
		if f, err = os.Open(p.path); err != nil {
			return 0, err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !os.SameFile(info, p.same) {
			return 0, errors.Join(err, errOther)
		}
	}
	n, err := f.ReadAt(b, at)
	if err == io.EOF && n < len(b) {
		err = errShorter
	}
	if n == len(b) {
		err = nil
	}
	return n, err
}

func (p *part) close() {
	if p.file != nil && p.file != p.spool.file {
		p.file.Close()
		p.file = nil
	}
}

// A packing is how a file is compressed.
type packing struct {
	zstd   bool
	window uint64 // bytes that a zstd decoder has to remember
}

// packingOf tells by its first bytes how a file is compressed; nil: it is not.
func packingOf(f *os.File) *packing {
	var head [zstd.HeaderMaxSize]byte
	n, _ := f.ReadAt(head[:], 0)
	switch {
	case bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}):
		return &packing{}
	case bytes.HasPrefix(head[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		p := &packing{zstd: true}
		var h zstd.Header
		if h.Decode(head[:n]) == nil {
			if p.window = h.WindowSize; h.SingleSegment {
				p.window = h.FrameContentSize
			}
		}
		return p
	}
	return nil
}

// unpack returns the content of a compressed file and what frees the decoder. A window beyond most
// is an error.
func (p *packing) unpack(from io.Reader, most uint64) (io.Reader, func(), error) {
	if !p.zstd {
		z, err := gzip.NewReader(from)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	}
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(most))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}
