// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// run reads the directory. What a crash can have left, and what becomes of it:
//
//   - a segment prepared but never used, or freed: kept as spare
//   - a segment that has no number yet, a cursor's temporary file: ours, unfinished, and empty;
//     removed
//   - segments whose durability is unknown (those from the position that the newest header calls
//     synced): read from there on, what is whole is written again to its place and synced, so that
//     it counts as synced from now on
//   - a header that cannot be read, of a segment whose tails can: made again from these
//   - a header or cursor that cannot be read, a file of zeros, a file that says it is another one:
//     moved to quarantine and reported
//   - any other name: not ours, left alone
//
// The next append opens a new segment; a tail is never appended to.
func (v *recovery) run() (err error) {
	list, err := v.fs.ReadDir(v.dir)
	if err != nil {
		return err
	}
	var live []recovered
	defer func() {
		for _, r := range live {
			err = errors.Join(err, r.close())
		}
	}()
	if err := v.reserve.open(); err != nil {
		return err
	}
	var rescues []string
	files := map[uint32]bool{}     // numbers of segment files
	cursors := map[string]string{} // names by file
	top := Position(0)
	for _, e := range list {
		seq, ok := segmentSeq(e.Name)
		if ok { // also of a directory: no segment could be given its name
			top = max(top, at(seq, 0))
		}
		if !e.Regular {
			continue
		}
		if ok {
			files[seq] = true
			r, err := v.openSegment(e, seq)
			if err != nil {
				return err
			}
			if r != nil {
				live = append(live, *r)
			}
			continue
		}
		if _, ok := rescueSeq(e.Name); ok {
			rescues = append(rescues, e.Name)
			continue
		}
		switch name, ok := cursorName(e.Name); {
		case ok:
			cursors[e.Name] = name
		case strings.HasPrefix(e.Name, cursorPrefix) && strings.HasSuffix(e.Name, ".tmp"), e.Name == unnamedSegment:
			if err := v.fs.Remove(v.path(e.Name)); err != nil {
				return err
			}
		case strings.HasPrefix(e.Name, "seg-") || strings.HasPrefix(e.Name, cursorPrefix):
			if err := v.moveAside(e.Name, errors.New("not a name that the journal gives")); err != nil {
				return err
			}
		}
	}
	for file, name := range cursors {
		if err := v.openCursor(file, name); err != nil {
			return err
		}
	}
	for _, c := range v.cursors.named {
		top = max(top, Position(c.at.Load()))
	}
	// Nor are the numbers of segments that were set aside given again.
	aside, err := v.fs.ReadDir(v.path(quarantineDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range aside {
		if i := strings.Index(e.Name, ".log"); i >= 0 {
			if seq, ok := segmentSeq(e.Name[:i+4]); ok {
				top = max(top, at(seq, 0))
			}
		}
	}
	for _, name := range rescues {
		seq, _ := rescueSeq(name)
		var s *segment
		if i := slices.IndexFunc(live, func(r recovered) bool { return r.seq == seq }); i >= 0 {
			s = live[i].segment
		}
		if err := v.reserve.applyRescue(name, s); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	end, err := v.recoverTail(live)
	if err != nil {
		return err
	}
	v.last = v.lastRecord()
	v.lost(live, files)
	for _, c := range v.cursors.named {
		p := Position(c.at.Load())
		for _, s := range v.segs {
			// Padding of less than a header is not read as such.
			if end := s.end.Load(); s.seq == p.seq() && p.off() > end &&
				(p.off() > pageUp(end) || pageUp(end)-end >= recordHeader) {
				v.tellHole(&CorruptError{
					Path: s.path, Offset: end, Length: p.off() - end,
					Err: fmt.Errorf("cursor %s has read up to %v, but these records are gone", c.name, p),
				})
			}
		}
		// Beyond the last segment is where a cursor stands after all before it was freed.
		end, v.last = max(end, p), max(v.last, p)
	}
	if top.seq() == 1<<32-1 {
		return errors.New("segment numbers are used up")
	}
	v.nextSeq = top.seq() + 1
	v.written = end
	v.syncer.synced.Store(uint64(end))
	v.releaseLocked()
	return nil
}

// openSegment opens one segment file. It returns nil when the file holds no records: then it was
// kept as a spare or dealt with.
func (v *recovery) openSegment(e DirEntry, seq uint32) (*recovered, error) {
	path := v.path(e.Name)
	f, err := v.fs.Open(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	page := make([]byte, pageSize)
	if err := v.readAt(f, page, 0); err != nil {
		return nil, errors.Join(v.moveAside(e.Name, err), f.Close())
	}
	s := &segment{seq: seq, path: path, file: f, size: size}
	var h segmentHeader
	err = h.parse(page)
	if errors.Is(err, errHeader) || errors.Is(err, errBlank) {
		if made, ok := s.rebuild(v.folder); ok {
			v.hole(seq, made.nonce, path, f, 0, pageSize, fmt.Errorf("%w; it is made again", err))
			v.bytes += size
			s.nonce, s.modified = made.nonce, e.Modified
			return &recovered{segment: s, h: made, rebuilt: true}, nil
		}
	}
	switch {
	case errors.Is(err, errVersion):
		// Not damage: a later version of this program wrote it, and can read it.
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	case errors.Is(err, errBlank) && blank(f, size):
		err = errZeros
	case err == nil && h.kind == segmentSpare: // of whatever number: it is given the next one before it is renamed
		v.bytes += size
		s.filled = pageSize
		v.free = append(v.free, s)
		return nil, nil
	case err == nil && h.seq != seq:
		err = fmt.Errorf("its header is that of segment %d", h.seq)
	}
	if err != nil {
		return nil, errors.Join(v.moveAside(e.Name, err), f.Close())
	}
	v.bytes += size
	s.nonce, s.modified = h.nonce, e.Modified
	return &recovered{segment: s, h: h}, nil
}

// openCursor reads a cursor; one that cannot be read is set aside, and its reader starts again at
// the oldest record.
func (v *recovery) openCursor(file, name string) error {
	c := &cursor{name: name, path: v.path(file)}
	f, err := v.fs.Open(c.path)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size > maxCursor {
		err = errCursor
	}
	var b []byte
	if err == nil {
		b = make([]byte, size)
		err = v.readAt(f, b, 0)
	}
	if err == nil {
		err = c.load(b)
	}
	if errors.Is(err, errVersion) { // as with segments
		return errors.Join(fmt.Errorf("%s: %w", c.path, err), f.Close())
	}
	if err != nil {
		// The cursor goes on holding everything, under its name, until a reader commits.
		if err := errors.Join(f.Close(), v.moveAside(file, err)); err != nil {
			return err
		}
		v.cursors.named[name] = c
		return nil
	}
	c.file = f
	v.cursors.named[name] = c
	return c.harden(v.reserve)
}

// recoverTail finds where each segment's records end and makes them durable. It returns the end of
// the last.
func (v *recovery) recoverTail(live []recovered) (Position, error) {
	slices.SortFunc(live, func(a, b recovered) int { return cmp.Compare(a.seq, b.seq) })
	if len(live) == 0 {
		return 0, nil
	}
	// A later header says where what came before it ends. Where that segment is missing, reading
	// must find the end.
	known := make([]bool, len(live))
	limit := Position(1<<64 - 1)
	for i := len(live) - 1; i >= 0; i-- {
		s := live[i]
		end := s.size
		if limit.seq() == s.seq { // beyond the file where that was cut: readers will meet it
			end, known[i] = limit.off(), true
		} else if limit.seq() < s.seq {
			end, known[i] = dataStart, true // all of it was given up
		}
		s.end.Store(max(end, dataStart))
		if s.rebuilt {
			limit = min(limit, at(s.seq, 0)) // reading must find the end of the one before, too
		} else {
			limit = min(limit, s.h.prev)
		}
	}
	last := live[len(live)-1]
	from := last.h.synced
	clean, err := last.restoreTails(v.folder)
	if err != nil {
		return 0, fmt.Errorf("%s: restore tail: %w", last.path, err)
	}
	durable := v.wasDurable(live)
	if clean > 0 {
		from = at(last.seq, clean)
	}
	for i, s := range live {
		s.last = s.end.Load()
		if s.seq >= from.seq() || !known[i] {
			sure := int64(dataStart)
			if s.seq == from.seq() {
				sure = max(sure, from.off())
			}
			end, err := v.recoverSegment(s.segment, sure)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", s.path, err)
			}
			if !s.signedOff && !s.rebuilt {
				if err := s.hardenHeader(end); err != nil {
					return 0, fmt.Errorf("%s: write its header again: %w", s.path, err)
				}
			}
			v.lostTail(s.segment, end, known[i], durable)
			if !known[i] {
				if err := v.cutTail(s.segment, end); err != nil {
					return 0, fmt.Errorf("%s: %w", s.path, err)
				}
				s.end.Store(end)
			}
			s.last = min(end, s.end.Load())
		}
		s.wrote, s.clean, s.filled = s.end.Load(), s.end.Load(), s.size
		if s.rebuilt {
			if err := s.writeHeader(live[:i]); err != nil {
				return 0, fmt.Errorf("%s: write its header: %w", s.path, err)
			}
		}
		v.segs = append(v.segs, s.segment)
	}
	return at(last.seq, last.end.Load()), nil
}
