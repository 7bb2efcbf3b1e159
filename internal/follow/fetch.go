// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"bytes"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/internal/step"
	"github.com/spillwaylog/spillway/journal"
)

// A fetcher makes flights of the journal's records, or of recent chunks.
type fetcher struct {
	*core
	flights  *flights
	splitter *splitter
	sieve    *sieve
}

// read fills a flight with the next chunk that the output gets, or that it does not get.
func (h *fetcher) read(x *flight) (ok bool, err error) {
	had := x.size()
	if h.sieve.pending() {
		h.filled(x, had, h.sieve.fill(x))
		return true, nil
	}
	ok, err = h.fetch(x)
	if !ok || x.broken || x.idle || h.sieve.takes(x.chunk.Tag) != step.Some {
		return ok, err
	}
	had = x.size()
	h.filled(x, had, h.sieve.sift(x))
	return true, nil
}

// fetch fills a flight with the next chunk: from memory if it is there, else from the journal.
func (h *fetcher) fetch(x *flight) (ok bool, err error) {
	had := x.size()
	if h.splitter.cutting {
		h.filled(x, had, h.splitter.piece(x))
		return true, nil
	}
	whole := h.cfg.Opaque || h.takesWhole
	if h.cfg.Recent != nil {
		if r, ok := h.cfg.Recent(h.taken); ok {
			if h.until.passesLocked(r.End) {
				r.Held.Release()
				return false, nil
			}
			if err := h.cfg.Reader.SkipTo(r.End); err != nil {
				r.Held.Release()
				return false, err
			}
			if h.sieve.takes(r.Chunk.Tag) == step.None {
				h.skip(x, r.End, int64(r.Chunk.Events))
				r.Held.Release()
				return true, nil
			}
			if !whole && int64(len(r.Chunk.Entries)) > h.cfg.Piece {
				h.filled(x, had, h.splitter.cutRecent(x, r))
				return true, nil
			}
			x.end, x.chunk, x.held = r.End, r.Chunk, r.Held
			x.bytes = int64(len(x.chunk.Entries))
			return true, nil
		}
	}
	limit := int64(0) // what may be cut stays with the reader: pieces outlive their flights
	if whole {
		limit = h.cfg.Piece
	}
	rec, ok, err := h.cfg.Reader.TryNextTo(x.data, limit)
	if err != nil || !ok {
		h.splitter.endSplit()
		return false, err
	}
	if h.until.passesLocked(rec.Pos) {
		h.splitter.endSplit()
		return false, h.cfg.Reader.SkipTo(h.taken)
	}
	x.end, x.chunk = rec.Pos, &x.own
	if h.cfg.Sift != nil && x.own.Parse(rec.Data) == nil && h.sieve.takes(x.own.Tag) == step.None {
		h.skip(x, rec.Pos, int64(x.own.Events))
		h.splitter.endSplit()
		return true, nil
	}
	if !whole && int64(len(rec.Data)) > h.cfg.Piece {
		err = h.splitter.cutRecord(x, rec, forward.Chunk{})
	} else {
		if rec.Own {
			x.data = rec.Data
		} else {
			x.data = append(x.data[:0], rec.Data...)
		}
		x.bytes = int64(len(x.data))
		err = x.own.Parse(x.data)
		switch {
		case err != nil || x.own.Compressed == nil || h.cfg.Opaque:
		case whole:
			err = h.inflate(x)
		default:
			err = h.splitter.cutRecord(x, rec, x.own)
		}
	}
	if !h.splitter.cutting {
		h.splitter.endSplit()
	}
	h.filled(x, had, err)
	return true, nil
}

// skip makes a flight one of a record of which the output gets nothing.
func (h *fetcher) skip(x *flight, end journal.Position, events int64) {
	x.end, x.chunk, x.idle, x.filtered = end, &x.own, true, events
	x.own = forward.Chunk{Tag: x.own.Tag}
}

// filled notes what a flight that had so much memory has got.
func (h *fetcher) filled(x *flight, had int64, err error) {
	h.flights.room += x.size() - had
	if err != nil {
		// The journal's checksum was right, so it was written so: by a newer version, or by a fault
		// of ours.
		x.broken = true
		h.reportBroken(x.end, err)
	}
}

// inflate undoes the compression of a flight's entries. Flights share the decompressors: each would
// need more memory than its chunk.
func (h *fetcher) inflate(x *flight) error {
	if x.own.Compressed == nil {
		return nil
	}
	if err := h.splitter.inflater.Inflate(&x.own); err != nil {
		return err
	}
	x.entries = append(x.entries[:0], x.own.Entries...)
	x.own.Entries = x.entries
	x.bytes += int64(len(x.entries))
	return nil
}

// takeDeadly fills a flight with the next record, which is not submitted.
func (h *fetcher) takeDeadly(x *flight) (ok bool, err error) {
	defer h.splitter.endSplit()
	rec, ok, err := h.cfg.Reader.TryNext()
	if err != nil || !ok {
		return false, err
	}
	if h.until.passesLocked(rec.Pos) {
		return false, h.cfg.Reader.SkipTo(h.taken)
	}
	x.end, x.chunk, x.deadly = rec.Pos, &x.own, true
	x.own = forward.Chunk{}
	if err := x.own.Parse(rec.Data); err != nil {
		h.filled(x, x.size(), err)
		return true, nil
	}
	body := &x.own.Entries
	if x.own.Compressed != nil {
		body = &x.own.Compressed
	}
	*body = bytes.Clone(*body)
	x.own.ID = nil
	h.cfg.Report(codes.RecordDeadly.Errorf("the process ended three times while nothing but the record that ends at %v was in hand: it is a dead letter", rec.Pos))
	return true, nil
}

// readable returns the chunk of a flight with its entries uncompressed, unless it is a long event:
// the chunk itself, if the output has not had it as it came. The entries are valid until the next
// call.
func (h *fetcher) readable(x *flight) *forward.Chunk {
	if x.long == nil {
		return h.inflated(x.chunk)
	}
	c, err := x.long.Packed()
	if err != nil {
		h.cfg.Report(codes.RecordBroken.Errorf("a refused entry cannot be read: %w", err))
		c = &forward.Chunk{Tag: x.chunk.Tag}
	}
	return c
}

// inflated returns a chunk with its entries uncompressed.
func (h *fetcher) inflated(c *forward.Chunk) *forward.Chunk {
	if c.Compressed == nil || c.Entries != nil {
		return c
	}
	inflated := *c
	if err := h.splitter.inflater.Inflate(&inflated); err != nil {
		h.cfg.Report(codes.RecordBroken.Errorf("refused entries cannot be read: %w", err))
	}
	return &inflated
}
