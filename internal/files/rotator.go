// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// A rotator gives files whose time is over, or that are full, another name, and keeps those that
// were renamed, by whatever process, until their lines are committed. Then its keeper has them.
type rotator struct {
	o        *Options
	index    *index
	recorder *recorder
	handles  *handles

	keeper    *keeper   // of files that nobody writes; nil if there is nothing to do
	left      []*family // that the state named, until the first Write has them looked after
	tended    bool      // by that
	dismissed []*file   // that were retired and are settled, but perhaps not committed
	unable    time.Time // nothing is rotated before
}

// begin takes up what a state names.
func (r *rotator) begin(entries []entry) {
	if r.o.tends(r.index.pattern) {
		r.keeper = newKeeper(r.o)
		for _, e := range entries {
			r.left = append(r.left, r.familyOf(e.path, e.writer))
		}
	}
	for _, f := range r.index.order {
		if f.of != "" || r.handles.gathers {
			r.keeper.hold(f.path)
		}
	}
	r.claim()
}

// claim opens files that another output may have now, so that it neither compresses nor deletes
// them before their lines were looked for. One that cannot be opened is not the worse for it.
func (r *rotator) claim() {
	for _, f := range r.index.order {
		if r.index.passedOn(f) && r.handles.n < r.o.MaxOpen/2 {
			_ = r.open(f)
		}
	}
}

// open opens a file, and has its keeper look after what was rotated of it.
func (r *rotator) open(f *file) error {
	err := r.handles.open(f)
	if err == nil && r.keeper != nil && f.of == "" {
		if r.handles.gathers {
			r.keeper.hold(f.path)
		}
		r.keeper.tend(r.familyOf(f.path, f.writer))
	}
	return err
}

// familyOf returns the family of a path of a writer. What was written under another path is alone.
func (r *rotator) familyOf(path string, writer int) *family {
	x := r.index
	p := x.paths[writer]
	if p.text != x.pattern.text {
		p = &pattern{}
	}
	return p.familyOf(path, x.writers[writer], r.o.Shared)
}

// due reports whether f, of the given size, is to be rotated before what waits is written: its time
// is over, or not one line has room. It is not while lines are expected in it, or when it ends in a
// part of one.
func (r *rotator) due(f *file, size int64) bool {
	rule := &r.o.Rotation
	if !rule.on() || size == 0 || f.handle == nil || r.index.foreign(f) || f.expected || f.torn > 0 || f.long > 0 ||
		r.handles.now.Before(r.unable) {
		return false
	}
	if rule.Every > 0 && rule.period(r.handles.now) != f.period {
		return true
	}
	line := bytes.IndexByte(f.lines, '\n') + 1
	return rule.Size > 0 && line > 0 && size+int64(line) > rule.Size
}

// dueLong rotates the file before a long line where that is due. How long the line is must be known
// for that.
func (r *rotator) dueLong(f *file, render func(w io.Writer) error) error {
	rule := &r.o.Rotation
	if !rule.on() || f.long > 0 || r.index.foreign(f) || r.handles.now.Before(r.unable) {
		return nil
	}
	size, err := f.handle.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	due := rule.Every > 0 && rule.period(r.handles.now) != f.period
	if !due && rule.Size > 0 {
		var n counter
		if err := render(&n); err != nil {
			return err
		}
		due = size+int64(n) > rule.Size
	}
	if !due {
		return nil
	}
	return r.change(f)
}

// counter counts what is written.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// fitting returns how many bytes of what waits may be written to f, whole lines: 0 if it must be
// rotated first.
func (r *rotator) fitting(f *file) int {
	room := r.o.Rotation.Size - f.end
	if r.o.Rotation.Size == 0 || room >= int64(len(f.lines)) || r.index.foreign(f) || r.handles.now.Before(r.unable) {
		return len(f.lines)
	}
	n := bytes.LastIndexByte(f.lines[:max(room, 0)], '\n') + 1
	if n == 0 && f.end == 0 { // one line that no file has room for
		n = bytes.IndexByte(f.lines, '\n') + 1
	}
	return n
}

// rotateMidWrite rotates f in the middle of what waits, and makes the new file ready.
func (r *rotator) rotateMidWrite(f *file) error {
	if err := r.change(f); err != nil || f.known {
		return err
	}
	return r.recorder.name([]*file{f})
}

// change rotates f and opens the new file. It keeps the one that it has where that cannot be: see
// unable.
func (r *rotator) change(f *file) error {
	if err := r.rotate(f); err != nil {
		return err
	}
	if f.handle == nil {
		if err := r.open(f); err != nil {
			return err
		}
	}
	size, err := f.handle.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if f.known && f.inode != f.id.inode {
		f.known, f.touched = false, false
	}
	if f.end != size {
		f.end = -1
	}
	return f.continueAt(r.o.kernel, size)
}

// rotate renames f's file and leaves it. Another process may do so at the same time: the holder of
// the directory's lock does it, and only if the path is still that of the file.
func (r *rotator) rotate(f *file) error {
	unlock, ok := awaitDir(f.path)
	if !ok {
		r.unable = r.handles.now.Add(time.Second)
		return nil
	}
	defer unlock()
	if id, _, err := idAt(f.path); err != nil || id != f.id {
		return r.moved(f) // it is done
	}
	if !f.touched || !removeOpen {
		if err := r.handles.close(f); err != nil {
			return err
		}
	}
	to, err := freeName(f.path, r.handles.now)
	if err == nil {
		r.keeper.hold(to)
		err = r.o.kernel.rename(f.path, to)
	}
	if err != nil {
		r.keeper.free(to)
		r.unable = r.handles.now.Add(time.Minute)
		r.o.Report(codes.FileRotation.Errorf("files: rotation, tried again in a minute: %w", err))
		return nil
	}
	r.handles.dirs.named(to)
	if f.touched {
		r.retire(f, to)
	} else {
		f.renew()
		r.keeper.free(to)
	}
	if r.keeper != nil {
		r.keeper.tend(r.familyOf(f.path, f.writer))
	}
	return nil
}

// awaitDir locks the directory of a path. Nobody has that lock for long.
func awaitDir(path string) (unlock func(), ok bool) {
	const tries = 100
	for range tries {
		if unlock, ok = lockDir(path); ok {
			return unlock, true
		}
		<-time.After(time.Millisecond)
	}
	return nil, false
}

// rotateIdle rotates open files that wait for nothing but whose time has come, and notices those
// that others rotated.
func (r *rotator) rotateIdle() error {
	if !r.o.Rotation.on() {
		return nil
	}
	var errs []error
	for f := r.handles.newest; f != nil; {
		next := f.older
		if len(f.lines) == 0 && !r.index.foreign(f) && !f.expected {
			id, size, err := idAt(f.path)
			switch {
			case (err != nil || id != f.id) && f.touched: // the next line tells
			case err != nil || id != f.id:
				errs = append(errs, r.handles.close(f))
			case r.due(f, size):
				errs = append(errs, r.rotate(f))
			}
		}
		f = next
	}
	return errors.Join(errs...)
}

// tendLeft has it look after what earlier processes left, of the paths that are known: those in the
// state, and the one that a pattern without {tag} has now. Other tags' files have their turn when
// they are opened.
func (r *rotator) tendLeft() {
	if r.tended {
		return
	}
	r.tended = true
	for _, m := range r.left {
		r.keeper.tend(m)
	}
	r.left = nil
	if p, self := r.index.pattern, r.index.self; r.keeper != nil && !p.uses[tagPart] {
		r.keeper.tend(r.familyOf(p.path(p.route("", r.handles.now.Unix()), r.index.writers[self]), self))
	}
}

// end gives the keepers what is theirs, and lets the own one do what is due until ctx is done.
func (r *rotator) end(ctx context.Context) error {
	err := r.release()
	r.keeper.close(ctx)
	return err
}
