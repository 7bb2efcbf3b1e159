// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"sync"
)

// The reserve is room on the disk that no segment gets. A journal that filled its disk is emptied
// by cursors that move, and these need room at times: a state that grew makes a new file, and so
// does a new cursor. They take what they lack from the reserve. It is made whole again before
// another segment is created, if need be from a freed one.
//
// Its first page remembers one position, passed: all cursors had passed it when the last segment
// that held records was freed. A cursor that stands beyond it, with no segment there, has lost what
// followed.

const (
	reserveFile  = "reserve"
	reserveMagic = "SPILLRSV"
	reserveLen   = 28 // bytes of the first page that mean something
	reserveParts = 8  // it is given back in so many
)

// reserve is the file. It is nil bytes long where Options.Reserve is 0.
type reserve struct {
	*folder
	*life
	// Guarded by the lock of life.
	short   bool     // the reserve is not whole
	scarce  error    // why it could not be made so, nil while it may
	emptied Position // the reserve has yet to note that this was passed

	own    sync.Mutex // guards all below; held over calls to the kernel
	file   File       // nil: there is none
	size   int64      // of the file
	known  bool       // passed could be read, or was written
	passed Position
}

// open opens the file if there is one, whatever its length is now. The allocator makes one,
// and makes it whole.
func (r *reserve) open() error {
	if r.opt.Reserve == 0 {
		return nil
	}
	f, err := r.fs.Open(r.path(reserveFile))
	if errors.Is(err, fs.ErrNotExist) {
		r.short = true
		return nil
	}
	if err != nil {
		return err
	}
	r.file = f
	if r.size, err = f.Size(); err != nil {
		return err
	}
	page := make([]byte, reserveLen)
	if _, err := f.ReadAt(page, 0); err == nil {
		r.passed, r.known = parseReserve(page)
	}
	r.short = r.size < r.opt.Reserve
	return nil
}

func appendReserve(b []byte, passed Position) []byte {
	b = append(b, reserveMagic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(passed))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func parseReserve(b []byte) (passed Position, ok bool) {
	if len(b) < reserveLen || string(b[:8]) != reserveMagic || binary.LittleEndian.Uint32(b[8:]) != formatVersion ||
		crc32.Checksum(b[:reserveLen-4], castagnoli) != binary.LittleEndian.Uint32(b[reserveLen-4:]) {
		return 0, false
	}
	return Position(binary.LittleEndian.Uint64(b[16:])), true
}

// lacks is how much of the reserve is missing.
func (r *reserve) lacks() int64 {
	r.own.Lock()
	defer r.own.Unlock()
	return r.opt.Reserve - r.size
}

// fillLocked makes the reserve whole, or as large as the disk lets it be; all cursors had passed
// what is passed. With mu held.
func (r *reserve) fillLocked(passed Position) *job {
	return &job{
		work: func() error { return r.grow(passed) },
		settle: func(err error) error {
			switch {
			case err == nil:
				r.short, r.scarce = false, nil
			case isNoSpace(err):
				r.scarce = err
			default:
				r.short = false // of no use now; the next Open tries again
				r.tellLocked(fmt.Errorf("journal: no room is kept for cursors on a full disk: %w", err))
			}
			return nil
		},
	}
}

func (r *reserve) grow(passed Position) (err error) {
	r.own.Lock()
	defer r.own.Unlock()
	path := r.path(reserveFile)
	if r.file == nil {
		if r.file, err = r.fs.Create(path); err != nil {
			return err
		}
		if err = r.vouchLocked(passed); err == nil {
			err = r.fs.SyncDir(r.dir)
		}
		if err != nil {
			err = errors.Join(err, r.file.Close(), r.fs.Remove(path))
			r.file, r.known, r.size = nil, false, 0
			return err
		}
	}
	// In parts: a disk that has not all of it may have some.
	for r.size < r.opt.Reserve {
		next := min(r.opt.Reserve, r.size+r.part())
		if err := r.file.Allocate(next); err != nil {
			return err
		}
		r.size = next
	}
	return r.file.Datasync()
}

func (r *reserve) part() int64 { return pageUp(max(r.opt.Reserve/reserveParts, 2*pageSize)) }

// vouchLocked makes passed durable. With own held.
func (r *reserve) vouchLocked(passed Position) error {
	page := make([]byte, pageSize)
	copy(page, appendReserve(nil, passed))
	_, err := r.file.WriteAt(page, 0)
	if err == nil {
		err = r.file.Datasync()
	}
	if err == nil {
		r.passed, r.known, r.size = passed, true, max(r.size, pageSize)
	}
	return err
}

// vouchEmptiedLocked notes durably that all cursors had passed what the freed segments held, before
// one of these is written over. With mu held.
func (r *reserve) vouchEmptiedLocked() *job {
	passed := r.emptied
	return &job{
		work: func() error {
			r.own.Lock()
			defer r.own.Unlock()
			if r.file == nil || passed <= r.passed {
				return nil
			}
			return r.vouchLocked(passed)
		},
		settle: func(err error) error {
			if err == nil && passed == r.emptied {
				r.emptied = 0
			}
			return err
		},
	}
}

// with is WithReserve.
func (r *reserve) with(write func() error) error {
	err := write()
	if !isNoSpace(err) || r.opt.Reserve == 0 || errors.Is(err, ErrFull) {
		return err
	}
	r.own.Lock()
	defer r.own.Unlock()
	for isNoSpace(err) && r.file != nil && r.size > pageSize {
		size := max(pageSize, r.size-r.part())
		// Some file systems have the room again only when that is durable.
		if failed := errors.Join(r.file.Truncate(size), r.file.Datasync()); failed != nil {
			return errors.Join(err, failed)
		}
		r.size = size
		r.mu.Lock()
		r.short = true
		r.mu.Unlock()
		err = write()
	}
	if isNoSpace(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}

func (r *reserve) close() error {
	r.own.Lock()
	defer r.own.Unlock()
	return closeFile(&r.file)
}
