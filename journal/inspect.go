// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Inspection is what a directory holds, read without changing anything. Of a journal in use it is a
// picture that may already have moved on.
type Inspection struct {
	Dir         string
	Identity    [16]byte      // zero where there is none
	IdentityErr error         // why it cannot be read
	Segments    []SegmentInfo // by number; spare ones too
	Cursors     []CursorInfo  // by name
	Quarantine  []string      // names of what was set aside
	End         Position      // of the last whole record
}

// SegmentInfo is one segment file.
type SegmentInfo struct {
	Name    string
	Seq     uint32
	Nonce   string // hexadecimal
	Size    int64  // of the file
	Spare   bool   // prepared or freed: holds no records
	Prev    Position
	Valid   int64 // where the last whole record, or the padding behind it, ends
	Records int64
	Bytes   int64           // of the records' own
	Damage  []*CorruptError // what lies between whole records and cannot be read, or is missing at the end
	Err     error           // why nothing of it can be read

	nonce nonce
	limit int64
}

// CursorInfo is one cursor file.
type CursorInfo struct {
	Name    string
	Pos     Position
	Commits uint64
	State   []byte
	Records int64 // behind Pos
	Backlog int64 // their bytes
	Err     error
}

// Inspect reads the directory of a journal, whether a process has it open or not.
func Inspect(dir string) (*Inspection, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	i := &Inspection{Dir: dir}
	found := false
	for _, e := range list {
		found = found || e.Name() == "lock"
		if seq, ok := segmentSeq(e.Name()); ok && e.Type().IsRegular() {
			found = true
			if s, ok := inspectHeader(dir, e.Name(), seq); ok {
				i.Segments = append(i.Segments, s)
			}
		} else if name, ok := cursorName(e.Name()); ok && e.Type().IsRegular() {
			found = true
			if c := inspectCursor(dir, e.Name(), name); !errors.Is(c.Err, fs.ErrNotExist) {
				i.Cursors = append(i.Cursors, c)
			}
		} else if e.Name() == identityFile {
			if e.Type().IsRegular() {
				i.Identity, i.IdentityErr = inspectIdentity(dir)
			} else {
				i.IdentityErr = errIdentity // to open a pipe would be to wait for ever
			}
		} else if e.Name() == quarantineDir {
			q, _ := os.ReadDir(filepath.Join(dir, quarantineDir))
			for _, e := range q {
				i.Quarantine = append(i.Quarantine, e.Name())
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("journal: %s holds no journal", dir)
	}
	slices.SortFunc(i.Segments, func(a, b SegmentInfo) int { return cmp.Compare(a.Seq, b.Seq) })
	limit := Position(1<<64 - 1)
	for n := len(i.Segments) - 1; n >= 0; n-- {
		s := &i.Segments[n]
		s.limit = s.Size
		if s.Spare || s.Err != nil {
			continue
		}
		if limit.seq() == s.Seq {
			s.limit = min(limit.off(), s.Size)
		} else if limit.seq() < s.Seq {
			s.limit = dataStart
		}
		limit = min(limit, s.Prev)
	}
	for n := range i.Segments {
		s := &i.Segments[n]
		if s.Spare || s.Err != nil {
			continue
		}
		err := i.walk(s, func(r Record) bool {
			s.Records++
			s.Bytes += int64(len(r.Data))
			i.End = max(i.End, r.Pos)
			for k := range i.Cursors {
				if c := &i.Cursors[k]; r.Pos > c.Pos {
					c.Records++
					c.Backlog += int64(len(r.Data))
				}
			}
			return true
		}, true)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Err = err
		}
	}
	return i, nil
}

// inspectCursor's Err is that there is no such file where that has gone meanwhile.
func inspectCursor(dir, file, name string) CursorInfo {
	c := CursorInfo{Name: name}
	path := filepath.Join(dir, file)
	fi, err := os.Stat(path)
	if err == nil && fi.Size() > maxCursor {
		err = errCursor
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	var cur cursor
	if c.Err = err; err == nil {
		c.Err = cur.load(b)
	}
	c.Pos, c.Commits, c.State = Position(cur.at.Load()), cur.gen, cur.state
	return c
}

func inspectIdentity(dir string) (id [16]byte, err error) {
	f, err := os.Open(filepath.Join(dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return id, nil
	}
	if err != nil {
		return id, err
	}
	defer f.Close()
	b := make([]byte, identityLen+1)
	n, _ := f.ReadAt(b, 0) // what is missing shows
	return parseIdentity(b[:n])
}

// inspectHeader is false when the file has gone meanwhile.
func inspectHeader(dir, name string, seq uint32) (SegmentInfo, bool) {
	s := SegmentInfo{Name: name, Seq: seq}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		s.Err = err
		return s, !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil {
		s.Size = fi.Size()
	}
	page := make([]byte, pageSize)
	if _, err := f.ReadAt(page, 0); err != nil && !errors.Is(err, io.EOF) {
		s.Err = err
		return s, true
	}
	var h segmentHeader
	switch s.Err = h.parse(page); {
	case errors.Is(s.Err, errBlank):
		s.Spare, s.Err = true, nil
	case s.Err != nil:
	case h.seq != seq && h.kind == segmentLive:
		s.Err = fmt.Errorf("its header is that of segment %d", h.seq)
	default:
		s.Spare = h.kind == segmentSpare
		s.nonce, s.Prev = h.nonce, h.prev
		s.Nonce = hex.EncodeToString(h.nonce[:])
	}
	return s, true
}

// walk yields the whole records of one segment; with note it fills in s.
func (i *Inspection) walk(s *SegmentInfo, yield func(Record) bool, note bool) error {
	path := filepath.Join(i.Dir, s.Name)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var scan scanner
	scan.reset(f, s.Seq, s.nonce)
	off, exact, again := int64(dataStart), s.limit < s.Size, int64(0)
	for off < s.limit {
		kind, data, start, end, err := scan.record(off, s.limit)
		if errors.Is(err, errEndOfRecord) {
			off = s.limit
			break
		}
		if err == nil {
			off = end
			if kind == kindRecord && !yield(Record{Pos: at(s.Seq, end), Data: data}) {
				return nil
			}
			continue
		}
		if !exact && again < start {
			// Perhaps it was being written just now.
			again = start
			scan.reset(f, s.Seq, s.nonce)
			continue
		}
		next, ok := scan.after(start, end, s.limit, nil)
		if !ok && !exact {
			break // the end of what was written
		}
		if !ok {
			next = s.limit
		}
		if note {
			s.Damage = append(s.Damage, &CorruptError{Path: path, Offset: start, Length: next - start, Err: err})
		}
		off = next
	}
	if note {
		s.Valid = off
	}
	return nil
}

// Records yields every whole record in order until yield returns false.
func (i *Inspection) Records(yield func(Record) bool) error {
	stopped := false
	for n := range i.Segments {
		s := &i.Segments[n]
		if s.Spare || s.Err != nil || stopped {
			continue
		}
		err := i.walk(s, func(r Record) bool {
			stopped = !yield(r)
			return !stopped
		}, false)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
