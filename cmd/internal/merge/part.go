// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"

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
	errKind    = errors.New("no regular file")
	errGone    = errors.New("it is gone; what was written last may be missing")
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
	n, err := p.ReadAt(b[:min(int64(len(b)), p.size-p.at)], p.at)
	p.at += int64(n)
	p.spool.done += int64(n)
	if n > 0 {
		err = nil // it is told by the next read
	}
	return n, err
}

// ReadAt reads less than asked for only with an error.
func (p *part) ReadAt(b []byte, at int64) (int, error) {
	f := p.file
	if f == nil {
		var err error
		if f, _, err = openRegular(p.path, p.same); err != nil {
			return 0, err
		}
		defer f.Close()
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

// openRegular opens a file that is regular and, unless that is nil, the same as before. It does not
// wait for what has taken its place, a pipe say.
func openRegular(path string, same os.FileInfo) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errKind
	case same != nil && !os.SameFile(info, same):
		err = errOther
	default:
		return f, info, nil
	}
	f.Close()
	return nil, nil, err
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

// largeWindow is how many bytes a decoder may have while a file is unpacked, at least.
const largeWindow = 32 << 20

// packingOf tells by its first bytes how a file is compressed; nil: it is not.
func packingOf(f io.ReaderAt) *packing {
	var head [zstd.HeaderMaxSize]byte
	n, _ := f.ReadAt(head[:], 0)
	switch {
	case bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}):
		return &packing{}
	case n >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}):
		return &packing{zstd: true, window: largeWindow} // a frame that is skipped; pzstd begins with one
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

// unpack returns the content of a compressed file and what frees the decoder. A window beyond limit
// is an error.
func (p *packing) unpack(from io.Reader, limit uint64) (io.Reader, func(), error) {
	if !p.zstd {
		z, err := gzip.NewReader(from)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	}
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(limit))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}
