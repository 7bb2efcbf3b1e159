// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// A spool is the temporary file of a merge, made when it is needed. It only grows; what is in it
// are the contents of compressed files, and runs.
//
// A run is lines in order, each a record:
//
//	┌────────┬──────────────┬────────┬────────┬──────┐
//	│ time 8 │ number 8     │ file 4 │ size 4 │ text │    little-endian; file is its place among all
//	└────────┴──────────────┴────────┴────────┴──────┘
type spool struct {
	file *os.File
	size int64
	base int   // bytes of the buffer with which a run is read
	done int64 // bytes that were read, of the spool and of files

	check func() error // before each read, which its error ends
}

const recordHead = 24

// Write appends.
func (s *spool) Write(b []byte) (int, error) {
	if s.file == nil {
		f, err := os.CreateTemp("", "spillway-merge-*")
		if err != nil {
			return 0, err
		}
		s.file = f
		_ = os.Remove(f.Name()) // where an open file can be; elsewhere close does it
	}
	n, err := s.file.WriteAt(b, s.size)
	s.size += int64(n)
	if err != nil {
		err = fmt.Errorf("temporary file: %w", err)
	}
	return n, err
}

// since is what was written from a place on.
func (s *spool) since(start int64) *part {
	return &part{file: s.file, spool: s, at: start, size: s.size}
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// A runWriter writes a run. Nothing else may write to the spool meanwhile.
type runWriter struct {
	spool *spool
	w     *bufio.Writer
	start int64
}

func (s *spool) newRun() *runWriter {
	return &runWriter{s, bufio.NewWriterSize(s, 64<<10), s.size}
}

func (r *runWriter) add(time int64, n, number int, text []byte) error {
	if int64(n) > math.MaxUint32 || len(text) > MaxLine {
		return errors.New("a record that is too large")
	}
	var head [recordHead]byte
	binary.LittleEndian.PutUint64(head[:], uint64(time))
	binary.LittleEndian.PutUint64(head[8:], uint64(number))
	binary.LittleEndian.PutUint32(head[16:], uint32(n))
	binary.LittleEndian.PutUint32(head[20:], uint32(len(text)))
	if _, err := r.w.Write(head[:]); err != nil {
		return err
	}
	_, err := r.w.Write(text)
	return err
}

// end returns the run, to be read.
func (r *runWriter) end() (*input, error) {
	if err := r.w.Flush(); err != nil {
		return nil, err
	}
	p := r.spool.since(r.start)
	return &input{path: "temporary file", from: p, part: p, run: true, base: r.spool.base}, nil
}

// record takes the next record of a run.
func (f *input) record() error {
	if !f.have(recordHead) {
		if f.end > f.at && f.ended == io.EOF { //nolint:errorlint // a part's own is never wrapped
			return io.ErrUnexpectedEOF
		}
		return f.ended
	}
	head := f.buf[f.at:]
	f.time = int64(binary.LittleEndian.Uint64(head))
	f.number = int(binary.LittleEndian.Uint64(head[8:]))
	f.n = int(binary.LittleEndian.Uint32(head[16:]))
	size := int(binary.LittleEndian.Uint32(head[20:]))
	f.at += recordHead
	if size > MaxLine || !f.have(size) {
		return io.ErrUnexpectedEOF
	}
	f.line, f.whole, f.away = f.buf[f.at:f.at+size], false, 0
	f.at += size
	return nil
}

// have sees to it that so much is in the buffer; false if there is less.
func (f *input) have(n int) bool {
	for f.end-f.at < n {
		if f.ended != nil {
			return false
		}
		f.fill()
	}
	return true
}
