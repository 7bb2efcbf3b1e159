// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spillwaylog/spillway/journal"
)

const (
	cursorName   = "letters"
	cursorFile   = "cursor-" + cursorName // as package journal calls it
	segmentBytes = 1 << 20
)

// ErrLocked says that another process has the directory open. It is journal.ErrLocked; the error's
// text names the process.
var ErrLocked = journal.ErrLocked

const (
	defaultMaxBytes = 256 << 20
	minMaxBytes     = 256 << 10 // package journal takes no less
)

// A box is an open directory of letters. It is not for several goroutines at once, its journal is.
type box struct {
	journal *journal.Journal
	reader  *journal.Reader
	state   state
	buf     []byte
}

// openBox opens the directory, and makes it if there is none.
func openBox(dir string, o *Options) (b *box, err error) {
	b = new(box)
	b.journal, err = journal.Open(dir, &journal.Options{
		MaxBytes: o.MaxBytes, SegmentBytes: segmentBytes, Report: o.Report, FS: o.fs,
	})
	if err != nil {
		return nil, err
	}
	if b.reader, err = b.journal.Reader(cursorName); err != nil {
		return nil, errors.Join(err, b.journal.Close())
	}
	at, text := b.reader.Committed()
	if len(text) > 0 {
		b.state, err = parseState(text, at)
	} else {
		b.state = newState()
		b.state.cursor = at
		err = b.commit()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", filepath.Join(dir, cursorFile), err), b.close())
	}
	return b, nil
}

// commit makes the state durable. Its cursor must have been read.
func (b *box) commit() error {
	b.buf = b.state.append(b.buf[:0])
	return b.reader.Commit(b.state.cursor, b.buf)
}

// passTo commits that all up to p, which was read, is gone, keys among it. After an error all is as
// it was.
func (b *box) passTo(p journal.Position, keys []key) error {
	before := b.state
	b.state.marks = maps.Clone(before.marks)
	b.state.kept, b.state.recent = slices.Clone(before.kept), slices.Clone(before.recent)
	for _, k := range keys {
		b.state.remember(k)
	}
	b.state.advance(p)
	err := b.reader.SkipTo(p)
	if err == nil {
		err = b.commit()
	}
	if err != nil {
		b.state = before
		return errors.Join(err, b.reader.SkipTo(before.cursor))
	}
	return nil
}

func (b *box) close() error {
	return errors.Join(b.reader.Close(), b.journal.Close())
}

// Options of Open. The zero value, and nil, are the defaults.
type Options struct {
	// MaxBytes bounds the files (default 256 MiB, at least 256 KiB).
	MaxBytes int64
	// DropOldest makes room for a letter by giving up the oldest ones, instead of refusing it.
	DropOldest bool
	// Report is told what goes wrong besides errors that are returned, and what is dropped
	// (DroppedError). It must not block, nor call the store.
	Report func(error)

	fs journal.FS // of tests
}

func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	if r.MaxBytes == 0 {
		r.MaxBytes = defaultMaxBytes
	}
	if r.MaxBytes < minMaxBytes {
		return r, fmt.Errorf("letters: MaxBytes %d is below %d", r.MaxBytes, minMaxBytes)
	}
	if r.Report == nil {
		r.Report = func(error) {}
	}
	return r, nil
}
