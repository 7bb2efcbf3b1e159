// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/files"
	"github.com/spillwaylog/spillway/internal/lines"
)

// FileConfig says where lines go and how. Only Path is needed.
type FileConfig struct {
	Path     string            // with the placeholders {tag}, {date}, {hour}, {host}, {pid}; see package files
	Format   Format            // JSON or Text
	Text     lines.TextOptions // of Text
	Envelope lines.Options     // of JSON
	Rotate   files.Rotation
	FileMode fs.FileMode // of new files, before umask; default 0644
	DirMode  fs.FileMode // of new directories, before umask; default 0755

	MinBackoff, MaxBackoff time.Duration // between attempts; defaults 100 ms and 10 s
	Trip
}

// fileDestination appends lines to files.
type fileDestination struct {
	*queue
	files *fileSink
}

// fileBuffer is how much is rendered before it is written: what the cache of a core holds, so that the kernel copies from there.
const fileBuffer = 128 << 10

// NewFile returns a destination that appends lines to files; it is Stateful. A chunk is delivered when all its lines are with the kernel, so that they
// survive the process; Close brings them to the disk.
func NewFile(c *FileConfig) (Destination, error) {
	r, err := c.Format.renderer(&c.Envelope, &c.Text)
	if err != nil {
		return nil, err
	}
	s := &fileSink{config: *c, renderer: r}
	s.render = s.appendLine
	if s.set, err = s.open(nil); err != nil {
		return nil, err
	}
	s.queue = newQueue(c.Path, s, &c.Trip, c.MinBackoff, c.MaxBackoff)
	return &fileDestination{s.queue, s}, nil
}

// Restore implements Stateful.
func (d *fileDestination) Restore(states [][]byte, record func(state []byte) error) error {
	state, err := files.Merge(states...)
	if err != nil {
		d.tell(fmt.Errorf("%s: %w; lines may be written twice", d.name, err))
	}
	set, err := d.files.open(state)
	if err != nil {
		return err
	}
	err = d.files.set.Close()
	d.files.set, d.files.record = set, record
	return err
}

// Close implements Destination.
func (d *fileDestination) Close(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok {
		d.files.deadline.CompareAndSwap(nil, &end)
	}
	return d.queue.Close(ctx)
}

// fileSink is the sink of a file destination.
type fileSink struct {
	*queue
	config   FileConfig
	renderer renderer
	render   func(dst []byte) []byte // appendLine
	set      *files.Set
	record   func(state []byte) error
	deadline atomic.Pointer[time.Time] // of Close

	tag  string // what appendLine renders
	rest []byte
}

func (s *fileSink) open(state []byte) (*files.Set, error) {
	return files.Open(s.config.Path, state, &files.Options{
		MaxOpen: 64, Buffer: fileBuffer, FileMode: s.config.FileMode, DirMode: s.config.DirMode,
		NoSync: true, Rotation: s.config.Rotate,
		Record: s.store,
		Report: func(err error) { s.tell(err) },
	})
}

// store records a state. That it cannot be stored is no reason to write nothing: the lines come at least once then.
func (s *fileSink) store(state []byte) error {
	if s.record == nil {
		return nil
	}
	if !s.acquire() {
		return errGone
	}
	defer s.give()
	if err := s.record(state); err != nil {
		s.tell(fmt.Errorf("%s: its state cannot be stored; after a crash lines may be written twice: %w", s.name, err))
	}
	return nil
}

func (s *fileSink) write(jobs []*job) (done int, states [][]byte, err error) {
	for i, j := range jobs {
		for !j.rendered {
			full, err := s.extend(j)
			if err == nil && full {
				err = s.set.Write()
			}
			if err != nil {
				return 0, nil, err
			}
		}
		if i == len(jobs)-1 || s.set.Recovering() {
			break
		}
	}
	states, err = s.set.Settle() // and nothing else before they are stored
	return len(states), states, err
}

// extend renders the entries of a job until enough waits in the set.
func (s *fileSink) extend(j *job) (full bool, err error) {
	if !s.acquire() {
		return false, errGone
	}
	defer s.give()
	s.tag, s.rest, j.begun = j.chunk.Tag, j.rest, true
	for !full && len(s.rest) > 0 && err == nil {
		full, err = s.set.Extend(s.tag, secondOf(s.rest), s.render)
	}
	j.rest, s.rest = s.rest, nil
	if err == nil && len(j.rest) == 0 {
		s.set.Mark()
		j.rendered = true
	}
	return full, err
}

// secondOf returns the time of the first of packed entries.
func secondOf(entries []byte) int64 {
	sec, _, ok := lines.TimeOf(entries)
	if !ok {
		r := forward.ReadEntries(entries)
		e, _ := r.Next()
		sec = e.Sec
	}
	return sec
}

// appendLine appends the line of the next entry.
func (s *fileSink) appendLine(dst []byte) []byte {
	dst, n, err := appendNext(s.renderer, dst, s.tag, s.rest)
	if err != nil {
		s.tell(fmt.Errorf("%s: what follows cannot be read and is left out: %w", s.name, err))
	}
	s.rest = s.rest[n:]
	return dst
}

func (s *fileSink) drop() { s.set.Drop() }

// tick closes files that were not used for long, and rotates those whose time has come.
func (s *fileSink) tick() bool {
	if err := s.set.Write(); err != nil {
		s.tell(fmt.Errorf("%s: %w", s.name, err))
	}
	return s.set.Open() > 0
}

// close gives the rotated files half of the time that Close has, so that a compression never makes it fail.
func (s *fileSink) close() error {
	s.set.Drop()
	_ = s.set.Write() // the rest of a torn line, if there is room for it now; its chunk is known to have failed
	grace := files.CloseGrace
	if end := s.deadline.Load(); end != nil {
		grace = min(grace, time.Until(*end)/2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return s.set.CloseContext(ctx)
}
