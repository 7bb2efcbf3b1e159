// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/within"
	"github.com/spillwaylog/spillway/journal"
)

// IDLen is the length of a chunk's id.
const IDLen = 24

// An Entry is a chunk in a spill.
type Entry struct {
	Pos    journal.Position // its end
	Bytes  uint64           // of its entries
	Events uint32
}

// A Spill is a journal of chunks, with one cursor: this process's own, or an adopted one.
type Spill struct {
	Dir    string
	Made   time.Time
	Paired bool // the ring of the same owner was adopted as well

	// Of an adopted spill, as Discover found it:
	Found []Entry              // all that is not known to be done, in the order of positions
	IDs   map[[IDLen]byte]bool // of these

	folder   *Folder
	maxBytes int64          // bytes of its journal; 0: as many as all spills together may have
	files    *within.Folder // Dir, where it is reached by an open folder
	j        *journal.Journal
	rd       *journal.Reader
	early    journal.Record // met when those before it were asked for, which cannot be read
	gone     atomic.Bool    // it is being removed: errors of its journal are not told

	mu    sync.Mutex // over what was committed, which a destination does with its states
	at    journal.Position
	state []byte
}

// list reads the heads of all chunks that are not known to be done.
func (sp *Spill) list() error {
	failures := 0
	sp.IDs = map[[IDLen]byte]bool{}
	for {
		rec, ok, err := sp.rd.TryNext()
		if err != nil {
			if failures++; failures > 10 {
				return err
			}
			continue
		}
		if !ok {
			break
		}
		if sp.folder.listed++; sp.files != nil && sp.folder.listed > maxFound {
			return fmt.Errorf("there are more than %d chunks", maxFound)
		}
		if sp.folder.over() {
			return errGaveUp
		}
		e := Entry{Pos: rec.Pos, Bytes: uint64(len(rec.Data))}
		var c forward.Chunk
		if c.Parse(rec.Data) == nil {
			e.Events, e.Bytes = uint32(c.Events), uint64(len(c.Entries))
			if len(c.ID) == IDLen {
				sp.IDs[[IDLen]byte(c.ID)] = true
			}
		}
		sp.Found = append(sp.Found, e)
	}
	pos, state := sp.rd.Committed()
	sp.at, sp.state = pos, state
	// From the beginning again.
	if err := sp.rd.Close(); err != nil {
		return err
	}
	rd, err := sp.j.Reader(cursor)
	if err != nil {
		return err
	}
	sp.rd = rd
	return nil
}

// State is a copy of what the last Commit with a state stored. It may be called at any time.
func (sp *Spill) State() []byte {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return bytes.Clone(sp.state)
}

// Commit makes it durable that everything up to p is done. A nil state leaves the one that is
// there. It may be called at any time.
func (sp *Spill) Commit(p journal.Position, state []byte) error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if p <= sp.at {
		return nil
	}
	if state != nil {
		sp.state = append(sp.state[:0], state...)
	}
	if err := sp.rd.Commit(p, sp.state); err != nil {
		return err
	}
	sp.at = p
	return nil
}

// Pass makes sure that everything up to p may be committed, though it need not have been read.
func (sp *Spill) Pass(p journal.Position) error {
	if sp.rd.Pos() >= p {
		return nil
	}
	if err := sp.j.Sync(context.Background(), p); err != nil {
		return err
	}
	return sp.rd.SkipTo(p)
}

// Save makes a state durable and moves nothing. It may be called at any time.
func (sp *Spill) Save(state []byte) error {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.state = append(sp.state[:0], state...)
	return sp.rd.Commit(sp.at, sp.state)
}

// Bytes is what its segments take, 0 of one that is being removed: that may hang in a disk. It may
// be called at any time.
func (sp *Spill) Bytes() int64 {
	if sp.gone.Load() {
		return 0
	}
	return sp.j.Stats().Bytes
}

// Space is closed when a full spill may have room again. It may be called at any time.
func (sp *Spill) Space() <-chan struct{} { return sp.j.Space() }

// Close lets go of the spill. What is in it stays.
func (sp *Spill) Close() error { return sp.close() }

func (sp *Spill) close() (err error) {
	if sp.j != nil {
		err = sp.j.Close()
	}
	if sp.files != nil {
		err = errors.Join(err, sp.files.Close())
	}
	return err
}

// Forget lets go of a spill that was removed from outside.
func (sp *Spill) Forget() {
	sp.gone.Store(true)
	_ = sp.close() // it cannot keep anything any more
}

// Discard takes away a spill in which nothing is left. Without its owner's file no process takes it
// for a spill any more. What its journal set aside because it could not be read stays, unless the
// process died with a ring that was adopted too: then it is the end of a write that was cut short,
// and the ring still had it.
func (sp *Spill) Discard() error {
	sp.folder.counted = time.Time{}
	sp.gone.Store(true)
	remove := func() error {
		if sp.Paired {
			return sp.folder.removeBut(sp.Dir, "")
		}
		return sp.folder.removeBut(sp.Dir, quarantine)
	}
	err := sp.folder.move(filepath.Join(sp.Dir, ownerFile), filepath.Join(sp.Dir, emptyFile))
	if err == nil {
		_ = remove() // it may be preparing a segment, and so come to nothing
	}
	_ = sp.close() // only now, for its lock keeps others away; what it has not synced is nothing any more
	if err == nil {
		err = remove()
	}
	if err != nil {
		return fmt.Errorf("removing a spill: %w", err)
	}
	return nil
}

// removeBut removes a folder, but not a folder in it, nor itself, if there is something in that
// one. The file that says that nothing in it matters goes last.
func (r reach) removeBut(dir, kept string) error {
	if kept != "" {
		_ = r.remove(filepath.Join(dir, kept)) // fails unless it is empty, as it should
	}
	all, err := r.list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	stays := false
	for _, e := range all {
		switch e.Name {
		case kept:
			stays = true
		case emptyFile:
		default:
			err = errors.Join(err, r.removeAll(filepath.Join(dir, e.Name)))
		}
	}
	if err != nil {
		return err
	}
	if err := r.remove(filepath.Join(dir, emptyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if stays {
		return nil
	}
	if err := r.remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
