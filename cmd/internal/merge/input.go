// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// MaxLine is the most bytes of a line; longer ones are told and left out.
const MaxLine = 1 << 20

// maxWindow bounds the memory of a zstd decoder, in bytes.
const maxWindow = 32 << 20

// An input is one file, read forward.
type input struct {
	path string
	from io.Reader
	stop func()

	base  int    // bytes that buf has when no line is longer
	buf   []byte // what was read and not yet taken is buf[at:end]
	at    int
	end   int
	ended error // io.EOF or what went wrong

	number int // of the line, from 1
	line   []byte
	whole  bool // it had a newline
	time   int64
}

var errLong = fmt.Errorf("longer than %d bytes", MaxLine)

// next takes one line, without its newline. The line is valid until the next call.
func (f *input) next() error {
	long := false
	for seen := 0; ; {
		if n := bytes.IndexByte(f.buf[f.at+seen:f.end], '\n'); n >= 0 {
			f.take(seen+n, true)
			break
		}
		seen = f.end - f.at
		if f.ended != nil {
			if seen == 0 && !long {
				return f.ended
			}
			f.take(seen, false)
			break
		}
		if seen >= MaxLine {
			long, seen, f.at = true, 0, f.end
		}
		f.fill()
	}
	f.number++
	if long || len(f.line) > MaxLine {
		return errLong
	}
	return nil
}

func (f *input) take(n int, whole bool) {
	f.line, f.whole = f.buf[f.at:f.at+n], whole
	f.at = min(f.at+n+1, f.end)
}

// fill reads more. A buffer that has grown for a long line shrinks when that line is gone.
func (f *input) fill() {
	rest := f.end - f.at
	if rest == len(f.buf) {
		f.move(max(2*rest, f.base))
	} else if len(f.buf) > f.base && rest < f.base {
		f.move(f.base)
	} else {
		copy(f.buf, f.buf[f.at:f.end])
	}
	f.at, f.end = 0, rest
	n, err := f.from.Read(f.buf[rest:])
	f.end += n
	if err != nil {
		f.ended = err
		f.close()
	}
}

func (f *input) move(size int) {
	buf := make([]byte, size)
	copy(buf, f.buf[f.at:f.end])
	f.buf = buf
}

func (f *input) close() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// A part is what a file held when the merge began: held open, or opened anew for each read.
type part struct {
	file     *os.File // nil: not held open
	path     string
	at, size int64
	same     os.FileInfo
}

func (p *part) Read(b []byte) (int, error) {
	if p.at >= p.size {
		return 0, io.EOF
	}
	f := p.file
	if f == nil {
		var err error
		if f, err = os.Open(p.path); err != nil {
			return 0, err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !os.SameFile(info, p.same) {
			return 0, errors.Join(err, errors.New("another file has taken its place, the rest of it is missing"))
		}
	}
	n, err := f.ReadAt(b[:min(int64(len(b)), p.size-p.at)], p.at)
	p.at += int64(n)
	if err == io.EOF && p.at < p.size {
		err = io.ErrUnexpectedEOF // it became shorter
	}
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// packing tells by its first bytes how a file is compressed: "gzip", "zstd" or "".
func packing(f *os.File) string {
	var head [4]byte
	n, _ := f.ReadAt(head[:], 0)
	switch {
	case bytes.HasPrefix(head[:n], []byte{0x1f, 0x8b}):
		return "gzip"
	case bytes.Equal(head[:n], []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	}
	return ""
}

// unpack returns the content of a compressed file and what frees the decoder.
func unpack(from io.Reader, how string) (io.Reader, func(), error) {
	if how == "gzip" {
		z, err := gzip.NewReader(from)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	}
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}
