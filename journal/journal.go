// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Journal is an open directory. All methods may be called at the same time.
//
// Lock order: Reader.mu, cursor.mu, reserve.own, life.mu, holes.mu. life.mu, which is called mu
// everywhere, guards what appenders, the syncer, the allocator and readers share. It is never held
// over a call to the kernel but those that close a file, nor over Report. writer.writing is a
// lock too, for the right to write to segments: its holder has no other.
type Journal struct {
	folder
	life
	writer
	syncer
	reserve reserve
	cursors
	spares
	allocator
	wg    sync.WaitGroup
	ended sync.Once
}

// newJournal ties the parts together.
func newJournal(dir string, o Options) *Journal {
	j := &Journal{folder: folder{dir: dir, fs: o.FS, opt: o}}
	j.life.begin()
	j.writer.life = &j.life
	y := &j.syncer
	y.folder, y.life, y.writer = &j.folder, &j.life, &j.writer
	y.tail, y.next = make([]byte, pageSize), newSyncGroup()
	j.reserve.folder, j.reserve.life = &j.folder, &j.life
	j.cursors.begin()
	g := &j.spares
	g.folder, g.life, g.writer, g.reserve = &j.folder, &j.life, &j.writer, &j.reserve
	j.allocator.spares, j.allocator.syncer, j.allocator.cursors = g, y, &j.cursors
	return j
}

// Open opens the journal in dir, making the directory if it does not exist, and recovers what it
// holds. One process can have it open at a time.
func Open(dir string, o *Options) (*Journal, error) {
	j, err := load(dir, o)
	if err != nil {
		return nil, err
	}
	j.wg.Go(j.runSyncer)
	j.wg.Go(j.runAllocator)
	return j, nil
}

// load is Open without the goroutines.
func load(dir string, o *Options) (*Journal, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	j := newJournal(dir, opt)
	if err := j.makeDir(); err != nil {
		return nil, fmt.Errorf("journal: make directory: %w", err)
	}
	if j.lock, err = j.fs.Lock(j.path("lock")); err != nil {
		if errors.Is(err, ErrLocked) {
			return nil, err
		}
		return nil, fmt.Errorf("journal: directory %s cannot be used: %w", dir, err)
	}
	if err = (&recovery{&j.allocator}).run(); err == nil {
		err = j.openIdentity()
	}
	if err != nil {
		j.closeFiles()
		return nil, fmt.Errorf("journal: open %s: %w", dir, err)
	}
	return j, nil
}

// Close syncs what was appended, stops the journal's goroutines and releases the directory. It may
// be called again and at any time; waiters get ErrClosed. It waits for the disk.
func (j *Journal) Close() error {
	j.mu.Lock()
	if !j.closed {
		j.closed = true
		close(j.done)
		j.broadcastLocked()
	}
	j.mu.Unlock()
	j.ended.Do(func() {
		j.wg.Wait()
		err := j.closeFiles()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.closeErr = errors.Join(j.err, j.closeErr, err)
		j.openSpaceLocked()
	})
	return j.closeErr
}

// closeFiles ends Open or Close. It waits for commits to cursors: as soon as the lock is
// let go, the directory may be another's.
func (j *Journal) closeFiles() error {
	j.mu.Lock()
	named := slices.Collect(maps.Values(j.named))
	j.mu.Unlock()
	var errs []error
	for _, c := range named {
		errs = append(errs, c.close())
	}
	errs = append(errs, j.reserve.close())
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, list := range [][]*segment{j.segs, j.ready, j.free, j.aside} {
		for _, s := range list {
			errs = append(errs, s.close())
		}
	}
	for r := range j.reading {
		errs = append(errs, r.dropLocked())
	}
	return errors.Join(append(errs, j.lock.Close())...)
}

// Check returns an error if the file that is appended to was removed: then what Flush returned nil
// for is on no disk that will be read, nor, likely, what Sync returned nil for before. A Sync
// that has something to do checks this by itself. It costs a call of fstat.
func (j *Journal) Check() error {
	j.mu.Lock()
	s := j.seg
	if s == nil && len(j.ready) > 0 {
		s = j.ready[0]
	}
	if s == nil || s.file == nil {
		j.mu.Unlock()
		return nil
	}
	f, path := s.file, s.path
	j.mu.Unlock()
	if err := linked(f, path); errors.Is(err, errRemoved) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil // it may have been closed meanwhile, when another took its place
}

// WithReserve calls write, and again with some of [Options.Reserve] given back to the disk each
// time that write finds this full. It is for what has to be written before the journal can be
// emptied, and takes little; write undoes what it did when it fails. The error of a disk that stays
// full is an [ErrFull].
func (j *Journal) WithReserve(write func() error) error { return j.reserve.with(write) }
