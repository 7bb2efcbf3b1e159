// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// Fetch reads the chunks that end at the positions in want, which are those that follow what was
// read before, as far as they can be read: nil is one that cannot, ever. An error says that nothing
// more can be read now; it comes after a second at most, unless the disk hangs.
func (sp *Spill) Fetch(want []journal.Position) ([]*forward.Chunk, error) {
	f := sp.folder
	var chunks []*forward.Chunk
	failures := 0
	for len(chunks) < len(want) {
		rec, ok, err := sp.tryNext()
		if !ok && err == nil {
			if len(chunks) > 0 {
				break
			}
			// Only what is durable is read. It soon would be by itself; the destination waits.
			if err = sp.j.Sync(context.Background(), want[0]); err == nil && sp.rd.Pos() >= want[0] {
				return chunks, nil
			}
			switch {
			case err == nil && failures >= maxFailures:
				return sp.missing(want), nil
			case err != nil && sp.j.Check() != nil:
				// The file was removed: what was not durable then never will be.
				return make([]*forward.Chunk, len(want)), nil
			}
		}
		if err != nil || !ok {
			if failures++; err != nil && failures > maxFailures || errors.Is(err, journal.ErrClosed) || f.over() {
				return chunks, err
			}
			if err != nil || failures > 1 { // else it has just become durable
				f.pause() // there may be no more files just now
			}
			continue
		}
		for len(chunks) < len(want) && want[len(chunks)] < rec.Pos {
			chunks = append(chunks, nil)
		}
		if len(chunks) == len(want) {
			sp.early = journal.Record{Pos: rec.Pos, Data: bytes.Clone(rec.Data)}
			break
		}
		if rec.Pos < want[len(chunks)] {
			f.report(fmt.Errorf("%s at %v: it could not be read when the spill was opened, and is left out", sp.Dir,
				rec.Pos))
			continue
		}
		c := new(forward.Chunk)
		if err := c.Parse(append([]byte(nil), rec.Data...)); err != nil {
			f.report(fmt.Errorf("%s at %v: %w", sp.Dir, rec.Pos, err))
			chunks = append(chunks, nil)
			continue
		}
		chunks = append(chunks, c)
	}
	return chunks, nil
}

// maxFailures is how often reading is tried before it is given up for now.
const maxFailures = 10

// missing is the answer where the journal has nothing more to read although it is durable: it is
// gone. The reader goes on behind it.
func (sp *Spill) missing(want []journal.Position) []*forward.Chunk {
	n := 0
	for n < len(want) && want[n] <= sp.j.Synced() {
		n++
	}
	if n > 0 {
		_ = sp.rd.SkipTo(want[n-1]) // or the next one is read from where the reader is
	}
	return make([]*forward.Chunk, n)
}

// tryNext is the reader's next record, and before it the one that was read too early.
func (sp *Spill) tryNext() (rec journal.Record, ok bool, err error) {
	if rec = sp.early; rec.Data != nil {
		sp.early = journal.Record{}
		return rec, true, nil
	}
	return sp.rd.TryNext()
}

// Append appends those chunks that have no position yet, and gives them one, as far as there is
// room. They are copied. They are stored when Flush says so.
func (sp *Spill) Append(chunks []forward.Chunk, at []journal.Position) error {
	defer sp.folder.opt.Fault("appended")
	var head, tail []byte
	for i := range chunks {
		if at[i] != 0 {
			continue
		}
		head = chunks[i].AppendHead(head[:0])
		tail = chunks[i].AppendTail(tail[:0])
		p, err := sp.j.Append(head, chunks[i].Entries, tail)
		if err != nil {
			return err
		}
		at[i] = p
	}
	return nil
}

// Flush returns nil when everything up to p outlives the process. An error says that this is not
// known: the journal goes on trying by itself, and a later Flush may say it.
func (sp *Spill) Flush(p journal.Position) error {
	defer sp.folder.opt.Fault("flushed")
	return sp.j.Flush(context.Background(), p)
}

// Write is Append and Flush, again and again until all is stored, there is no room, or GaveUp is
// closed. n is how many of the first are stored.
func (sp *Spill) Write(chunks []forward.Chunk) (n int, err error) {
	at := make([]journal.Position, len(chunks))
	for {
		err = sp.Append(chunks, at)
		for n = 0; n < len(at) && at[n] != 0; {
			n++
		}
		var ferr error
		if n > 0 {
			ferr = sp.Flush(at[n-1])
		}
		if ferr == nil && (err == nil || errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrTooLarge)) {
			return n, err
		}
		if err = errors.Join(err, ferr); errors.Is(err, journal.ErrClosed) || sp.folder.over() {
			return 0, err
		}
		sp.folder.pause()
	}
}

// Removed says whether the file that is written to was removed: nothing more can be stored in
// this spill. all says that it is gone as a whole.
func (sp *Spill) Removed() (all, some bool) {
	_, err := os.Lstat(filepath.Join(sp.Dir, ownerFile))
	all = errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	return all, all || sp.j.Check() != nil
}
