// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/output"
)

// Dead letters: what the destination refuses for good goes into a journal in Dir, which all
// processes of that folder have in common. A chunk keeps its mark until its letters are on the
// disk. So after a crash it is sent again under its id; what is refused again is the same letter.
const (
	letterWait  = time.Minute            // for the folder, which another process or a replay has
	letterTurn  = 2 * time.Second        // so long one process may have it while others wait
	letterPause = 100 * time.Millisecond // before it is tried again
	minLetters  = 256 << 10              // bytes of the folder: an eighth of MaxDisk,
	maxLetters  = 64 << 20               // within these bounds
)

// dead is the way of dead letters to the disk. It has a goroutine of its own while there are some,
// since another process may have the folder.
type dead struct {
	*core
	work disk

	used atomic.Bool // there were some

	// only its goroutine's
	store  *letters.Store // nil: not open
	opened time.Time
}

func (d *dead) dir() string { return filepath.Join(d.cfg.Dir, letters.Dir) }

// keeps says whether what a chunk's result refuses becomes dead letters. A destination with a state
// has done its chunk when it says so, whatever becomes of letters; but it refuses nothing
// that could be read.
func (d *dead) keeps(r *output.Result) bool {
	return len(r.Rejected) > 0 && r.Err == nil && d.cfg.Dir != "" && d.resumer == nil
}

// keep makes letters of what is refused of a chunk, and calls then afterwards. It is called by
// the destination.
func (d *dead) keep(f *flight, r output.Result, then func(*flight, output.Result)) {
	var all []letters.Letter
	events := 0
	for _, refusal := range output.Refusals(r.Rejected, f.Chunk.Events) {
		part := output.Only(&f.Chunk, refusal.Entries)
		if part.Events < len(refusal.Entries) { // the others cannot be read: there is nothing to keep
			refusal.Entries = refusal.Entries[:part.Events]
		}
		if part.Events == 0 {
			continue
		}
		events += part.Events
		all = append(all, letters.Letter{
			Output: d.cfg.Identity, Reason: refusal.Reason, Time: time.Now(),
			Position: numberOf(&f.ID, f.Chunk.ID), Entries: refusal.Entries, Chunk: part,
		})
	}
	if len(all) == 0 {
		then(f, r)
		return
	}
	d.used.Store(true)
	d.work.do("writing dead letters to "+d.cfg.Dir, func() {
		err := d.put(all)
		switch {
		case err == nil:
			f.kept = uint64(events)
		case d.over():
			// The next process sends the chunk again, and gets the same answer.
			r = output.Result{Err: output.ErrClosed}
		default:
			d.report(fmt.Errorf("dead letters: %w", err))
		}
		then(f, r)
	})
}

// numberOf is what tells the letters of one chunk from those of another, in place of the position
// that a collector's have. It is of the id: the same for a chunk that is sent again.
func numberOf(own *[idLen]byte, id []byte) uint64 {
	if len(id) == 0 {
		id = own[:]
	}
	h := sha256.Sum256(id)
	return binary.BigEndian.Uint64(h[:])
}

// put stores letters. The folder may be another's for a while.
func (d *dead) put(all []letters.Letter) error {
	ctx, cancel := context.WithTimeout(context.Background(), letterWait)
	defer cancel()
	for !d.over() {
		err := d.try(ctx, all)
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(letterPause):
		case <-d.gaveUp:
		}
	}
	return ErrClosed
}

func (d *dead) try(ctx context.Context, all []letters.Letter) (err error) {
	if d.store == nil {
		d.store, err = letters.Open(d.dir(), &letters.Options{
			MaxBytes: min(max(d.cfg.MaxDisk/8, minLetters), maxLetters), DropOldest: true, Report: d.tell,
		})
		if err != nil {
			return err
		}
		d.opened = time.Now()
	}
	err = d.store.Put(ctx, all...)
	if err != nil || time.Since(d.opened) > letterTurn {
		d.close()
	}
	return err
}

// tell passes on what the store has to say.
func (d *dead) tell(err error) {
	var gone *letters.DroppedError
	if errors.As(err, &gone) {
		d.count.lettersLost.Add(uint64(gone.Events))
	}
	d.report(err)
}

// close lets go of the folder. Only on the goroutine.
func (d *dead) close() {
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.report(fmt.Errorf("dead letters: %w", err))
		}
		d.store = nil
	}
}
