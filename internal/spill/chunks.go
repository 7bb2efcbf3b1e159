// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/journal"
)

// Fetch reads the chunks that end at the positions in want, which are those that follow what was
// read before, as far as they can be read: nil is one that cannot.
func (sp *Spill) Fetch(want []journal.Position) ([]*forward.Chunk, error) {
	f := sp.folder
	var chunks []*forward.Chunk
	failures := 0
	for len(chunks) < len(want) {
		rec, ok, err := sp.tryNext()
		if err != nil {
			if failures++; failures > 10 || errors.Is(err, journal.ErrClosed) || f.over() {
				return chunks, err
			}
			f.pause() // there may be no more files just now
			continue
		}
		if !ok {
			if len(chunks) > 0 {
				break
			}
			// Only what is durable is read. It soon would be by itself; the destination waits.
			if err := sp.j.Sync(context.Background(), want[0]); err != nil {
				if errors.Is(err, journal.ErrClosed) {
					return chunks, err
				}
				f.pause() // the journal goes on trying by itself
			}
			if sp.rd.Pos() >= want[0] || f.over() {
				return chunks, nil
			}
			if failures++; failures > 50 {
				// It is durable and not read: it is gone.
				return append(chunks, nil), nil
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
			f.report(fmt.Errorf("%s at %v: it could not be read when the spill was opened, and is left out", sp.Dir, rec.Pos))
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

// tryNext is the reader's next record, and before it the one that was read too early.
func (sp *Spill) tryNext() (rec journal.Record, ok bool, err error) {
	if rec = sp.early; rec.Data != nil {
		sp.early = journal.Record{}
		return rec, true, nil
	}
	return sp.rd.TryNext()
}

// Write appends chunks and returns their positions, as many as there was room for. They outlive the
// process then.
func (sp *Spill) Write(chunks []*forward.Chunk) ([]journal.Position, error) {
	f := sp.folder
	var ends []journal.Position
	var head, tail []byte
	var err error
	for _, c := range chunks {
		head = c.AppendHead(head[:0])
		tail = c.AppendTail(tail[:0])
		var p journal.Position
		for tries := 0; ; tries++ {
			p, err = sp.j.Append(head, c.Entries, tail)
			if err == nil || errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrTooLarge) || f.over() {
				break
			}
			f.pause()
		}
		if err != nil {
			break
		}
		ends = append(ends, p)
	}
	f.opt.Fault("appended")
	if len(ends) > 0 {
		for {
			// An error means "not known to be stored": the journal goes on trying, and so the
			// chunks stay covered by their marks meanwhile.
			ferr := sp.j.Flush(context.Background(), ends[len(ends)-1])
			if ferr == nil {
				break
			}
			if errors.Is(ferr, journal.ErrClosed) || f.over() {
				return nil, ferr
			}
			f.pause()
		}
	}
	f.opt.Fault("flushed")
	return ends, err
}
