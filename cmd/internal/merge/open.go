// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	maxHeld     = 200     // descriptors
	maxStream   = 4       // decoders at once
	smallWindow = 8 << 20 // bytes that a decoder may have for long
)

// open opens files. What is wrong with one is told, and the others are opened all the same; the
// error is one that ends the merge.
func (m *merge) open(ctx context.Context, paths []string) error {
	var held, streams int
	for n, path := range paths {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		info, err := os.Stat(path)
		if err == nil && info.IsDir() && m.Dir != nil {
			if err := m.openDir(ctx, n, path); err != nil {
				return err
			}
			continue
		}
		if err == nil && !info.Mode().IsRegular() { // a process might wait for it to be opened
			err = errKind
		}
		var f *os.File
		if err == nil {
			f, info, err = openRegular(path, nil)
		}
		if err != nil {
			m.warn(path, 0, err)
			if m.Follow != nil && errors.Is(err, fs.ErrNotExist) {
				m.Broken-- // it is read when it comes
			}
			continue
		}
		in := m.input(n, path, f, info)
		m.files = append(m.files, in)
		m.all += in.part.size
		how := packingOf(f)
		in.follow = m.Follow != nil && how == nil
		if how != nil && (streams >= maxStream || how.window > smallWindow) {
			if err := m.unpack(ctx, in, how); err != nil {
				return fmt.Errorf("unpacking %s: %w", path, err)
			}
			continue
		}
		if held++; held > maxHeld {
			in.part.close()
		}
		if how != nil {
			streams++
			in.stream(how)
		}
	}
	return nil
}

// input is the one of a file that is open, or opened for each read.
func (m *merge) input(n int, path string, file *os.File, info os.FileInfo) *input {
	p := &part{file: file, path: path, size: info.Size(), same: info, spool: &m.spool}
	return &input{path: path, from: p, part: p, base: m.base, n: n, finder: finder{m.TimeKey, m.Zone, info.ModTime()}}
}

// openDir sorts the events of a directory into a run. The error is one that ends the merge.
func (m *merge) openDir(ctx context.Context, n int, path string) error {
	h := held{spool: &m.spool, limit: m.Memory / 4}
	f := &input{path: path, n: n, format: formats[0]}
	var failed error
	err := m.Dir(path, func(ns int64, line []byte) error {
		f.number++
		if failed = context.Cause(ctx); failed != nil {
			return failed
		}
		if len(line) > MaxLine {
			m.warn(path, f.number, errLong)
			return nil
		}
		if f.time, f.line = ns, line; !m.wanted(f) {
			m.Left++
			return nil
		}
		failed = h.push(ns, n, f.number, line)
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		m.warn(path, 0, err)
	}
	run, err := h.run()
	if err == nil && run.part.size > run.part.at {
		m.files = append(m.files, run)
	}
	return err
}

// stream reads a compressed file as it is.
func (f *input) stream(how *packing) {
	from, stop, err := how.unpack(f.part, smallWindow)
	if err != nil {
		f.ended = err
		f.close()
		return
	}
	f.from, f.stop = from, stop
}

// unpack unpacks a file to the spool. What is wrong with the file is told when the lines before
// that have been taken.
func (m *merge) unpack(ctx context.Context, in *input, how *packing) error {
	packed := in.part
	defer packed.close()
	from, stop, err := how.unpack(packed, uint64(max(largeWindow, m.Memory/2)))
	if err != nil {
		in.ended = err
		return nil
	}
	defer stop()
	start := m.spool.size
	w := &unpacked{m: m, ctx: ctx}
	_, err = io.Copy(w, onlyReader{from})
	if w.err != nil {
		return w.err
	}
	in.part = m.spool.since(start)
	in.part.err = err
	in.from = in.part
	return nil
}

// onlyReader hides what else a decoder can do: writing all at once, for which it takes more memory.
type onlyReader struct{ io.Reader }

// unpacked goes to the spool. It tells a failure to write from one to read.
type unpacked struct {
	m   *merge
	ctx context.Context
	err error
}

func (u *unpacked) Write(b []byte) (n int, err error) {
	u.m.progress()
	if n, u.err = u.m.spool.Write(b); u.err == nil {
		u.err = context.Cause(u.ctx)
	}
	return n, u.err
}
