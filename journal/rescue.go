// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

// Recovery writes again what it found whole in segments whose durability is unknown: the process
// before may have been told by the kernel, once, that these pages could not be written, after which
// the kernel takes them for clean. Pages that are on the disk already must not be lost by that when
// the power goes off meanwhile. So they are written to a rescue file first, and only when that is
// durable, to their place. A rescue file that a crash left is applied at the next Open; half
// written, it is of no use and of no need.

const (
	rescueMagic  = "SPILLRES"
	rescuePrefix = "rescue-"
	minRescue    = 4 * pageSize // what is written again at once, at least
)

func rescueName(seq uint32) string { return fmt.Sprintf("%s%016x", rescuePrefix, seq) }

func rescueSeq(name string) (uint32, bool) {
	hex, ok := strings.CutPrefix(name, rescuePrefix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	return uint32(n), err == nil
}

// harden makes [from,to) of a segment, which reads well, durable in its place without ever risking
// it.
func (r *reserve) harden(s *segment, from, to int64) error {
	from, to = pageDown(from), min(pageUp(to), s.size)
	if from >= to {
		return nil
	}
	path := r.path(rescueName(s.seq))
	var f File
	err := r.with(func() (err error) {
		f, err = r.writeRescue(path, s, from, to)
		return err
	})
	switch {
	case err == nil:
		// From the copy, not from where it was read: what is in memory there may be dropped at any
		// time.
		err = errors.Join(s.putBack(f), f.Close())
	case isNoSpace(err) && to-from > minRescue: // less at a time needs less room
		part := max(pageUp((to-from)/4), minRescue)
		for ; from < to; from += part {
			if err := r.harden(s, from, min(from+part, to)); err != nil {
				return err
			}
		}
		return nil
	case isNoSpace(err):
		// On a full disk there is no room for the copy; opening, so that readers can make room, is
		// worth more than a second net.
		if err := errors.Join(rewrite(s.file, from, to), s.file.Datasync()); err != nil {
			return fmt.Errorf("write again what was recovered: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("write again what was recovered: %w", err)
	}
	return r.fs.Remove(path) // not synced: applied once more it changes nothing
}

func (r *reserve) writeRescue(path string, s *segment, from, to int64) (File, error) {
	f, err := r.fs.Create(path)
	if err != nil {
		return nil, err
	}
	crc := uint32(0)
	buf := make([]byte, min(to-from, scanBlock))
	for off := from; off < to && err == nil; off += int64(len(buf)) {
		b := buf[:min(int64(len(buf)), to-off)]
		if _, err = s.file.ReadAt(b, off); err == nil {
			crc = crc32.Update(crc, castagnoli, b)
			_, err = f.WriteAt(b, pageSize+off-from)
		}
	}
	if err == nil {
		page := make([]byte, pageSize)
		copy(page, rescueMagic)
		binary.LittleEndian.PutUint64(page[8:], uint64(at(s.seq, from)))
		copy(page[16:], s.nonce[:])
		binary.LittleEndian.PutUint64(page[32:], uint64(to-from))
		binary.LittleEndian.PutUint32(page[40:], crc)
		binary.LittleEndian.PutUint32(page[44:], crc32.Checksum(page[:44], castagnoli))
		_, err = f.WriteAt(page, 0)
	}
	if err == nil {
		err = f.Datasync()
	}
	if err == nil {
		err = r.fs.SyncDir(r.dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), r.fs.Remove(path))
	}
	return f, nil
}

// applyRescue finishes what a crash interrupted, and removes the file.
func (r *reserve) applyRescue(name string, s *segment) error {
	path := r.path(name)
	f, err := r.fs.Open(path)
	if err != nil {
		return err
	}
	if s != nil {
		err = s.putBack(f)
	}
	return errors.Join(err, f.Close(), r.fs.Remove(path))
}

// putBack writes a whole rescue file of this very use of the segment to its place.
func (s *segment) putBack(f File) error {
	page := make([]byte, pageSize)
	if _, err := f.ReadAt(page, 0); err != nil {
		return nil // half written
	}
	p, n := Position(binary.LittleEndian.Uint64(page[8:])), int64(binary.LittleEndian.Uint64(page[32:]))
	if string(page[:8]) != rescueMagic || crc32.Checksum(page[:44],
		castagnoli) != binary.LittleEndian.Uint32(page[44:]) ||
		p.seq() != s.seq || nonce(page[16:32]) != s.nonce || p.off() < dataStart || n <= 0 || n > s.size-p.off() {
		return nil
	}
	// Twice through: first to see that it is whole.
	buf := make([]byte, min(n, scanBlock))
	for pass := range 2 {
		crc := uint32(0)
		for off := int64(0); off < n; off += int64(len(buf)) {
			b := buf[:min(int64(len(buf)), n-off)]
			if _, err := f.ReadAt(b, pageSize+off); err != nil {
				return nil
			}
			crc = crc32.Update(crc, castagnoli, b)
			if pass == 1 {
				if _, err := s.file.WriteAt(b, p.off()+off); err != nil {
					return err
				}
			}
		}
		if pass == 0 && crc != binary.LittleEndian.Uint32(page[40:]) {
			return nil
		}
	}
	return s.file.Datasync()
}
