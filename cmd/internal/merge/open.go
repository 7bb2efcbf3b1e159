// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	maxHeld   = 200 // descriptors
	maxStream = 4   // decoders at once
)

// inputs are all the files of a merge.
type inputs struct {
	files []*input
	spool *os.File // holds what many compressed files hold; nil: none
	size  int64    // of spool
	bytes int64    // that will be read, of plain files and of the spool
}

// openInputs opens files. What is wrong with one goes to trouble, and the others are opened all the
// same; the error is one that ends the merge.
func openInputs(paths []string, memory int, trouble func(path string, line int, err error)) (_ *inputs, err error) {
	all := &inputs{}
	base := min(max(memory/2/max(1, len(paths)), 4<<10), 256<<10)
	var held, streams int
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			trouble(path, 0, err)
			continue
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("no regular file")
		}
		if err != nil {
			f.Close()
			trouble(path, 0, err)
			continue
		}
		in := &input{path: path, base: base}
		from := &part{path: path, size: info.Size(), same: info}
		how := packing(f)
		if how != "" && streams >= maxStream {
			from.file = f
			err = all.unpackInto(in, from, how)
			f.Close()
			if err != nil {
				return all, err
			}
			all.files = append(all.files, in)
			continue
		}
		if held < maxHeld {
			held++
			from.file = f
			in.stop = func() { f.Close() }
		} else {
			f.Close()
		}
		all.bytes += from.size
		in.from = from
		if how != "" {
			streams++
			if err := in.unpack(from, how); err != nil {
				in.close()
				in.ended = err
			}
		}
		all.files = append(all.files, in)
	}
	return all, nil
}

func (f *input) unpack(from *part, how string) error {
	r, stop, err := unpack(from, how)
	if err != nil {
		return err
	}
	file := f.stop
	f.from, f.stop = r, func() {
		stop()
		if file != nil {
			file()
		}
	}
	return nil
}

// unpackInto unpacks a file to the end of the spool. What is wrong with the file is told when the
// lines before that have been taken.
func (all *inputs) unpackInto(in *input, from *part, how string) error {
	if all.spool == nil {
		f, err := os.CreateTemp("", "spillway-merge-*")
		if err != nil {
			return err
		}
		all.spool = f
		_ = os.Remove(f.Name()) // where an open file can be; elsewhere close does it
	}
	r, stop, err := unpack(from, how)
	if err != nil {
		in.ended = err
		return nil
	}
	defer stop()
	w := &spoolWriter{w: all.spool}
	n, err := io.Copy(w, r)
	if w.err != nil {
		return fmt.Errorf("unpacking %s: %w", in.path, w.err)
	}
	in.from = &section{io.NewSectionReader(all.spool, all.size, n), err}
	all.size += n
	all.bytes += n
	return nil
}

// spoolWriter tells a failure to write from one to read.
type spoolWriter struct {
	w   io.Writer
	err error
}

func (s *spoolWriter) Write(b []byte) (n int, err error) {
	n, s.err = s.w.Write(b)
	return n, s.err
}

// A section ends with what ended its unpacking.
type section struct {
	io.Reader
	err error
}

func (s *section) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err == io.EOF && s.err != nil {
		err = s.err
	}
	return n, err
}

func (all *inputs) close() {
	for _, f := range all.files {
		f.close()
	}
	if all.spool != nil {
		all.spool.Close()
		_ = os.Remove(all.spool.Name())
	}
}
