// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/within"
)

// A Dir is an open folder of rings, for processes that take over what dead ones left. It may be
// another user's where this process is root's: whatever its owner does to it meanwhile, nothing
// outside it is opened or removed, no symbolic link is followed, and nothing in it is used that is
// not its owner's.
type Dir struct {
	// MaxSize is the largest ring that Adopt takes; 0: any.
	MaxSize int64

	at     *folder
	boot   string
	closed bool
}

// OpenDir opens a folder of rings. The error wraps [ErrUnsafe] if it is a symbolic link, open to
// others than its owner, or another user's; root takes those of all users.
func OpenDir(path string) (*Dir, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	at, err := within.Open(path)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("%w: %s is a symbolic link, or no folder", ErrUnsafe, path)
	}
	if err != nil {
		return nil, err
	}
	d := &Dir{at: (&folder{Folder: at}).use(), boot: boot}
	me := os.Geteuid()
	switch {
	case me != 0 && at.UID() != me:
		err = fmt.Errorf("%w: %s belongs to another user", ErrUnsafe, path)
	case at.Mode().Perm()&0o077 != 0:
		err = fmt.Errorf("%w: %s", errOpen, path)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close closes it. Rings that were adopted in it stay.
func (d *Dir) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	return d.at.Close()
}

// UID is the owner of the folder, and of all that is used in it.
func (d *Dir) UID() int { return d.at.UID() }

// Names lists the rings in it, at most so many (0: all), in no order.
func (d *Dir) Names(limit int) (names []string, err error) {
	all, err := d.at.Names(limit)
	for _, name := range all {
		if _, temporary, ok := parseFolderName(name); ok && !temporary {
			names = append(names, name)
		}
	}
	return names, err
}

// Clean removes what processes left that were killed while they made or removed a ring, of at most
// so many entries (0: all). It holds nothing: a ring is renamed when it is ready, and renamed back
// before it is removed.
func (d *Dir) Clean(limit int) {
	names, _ := d.at.Names(limit) // what cannot be listed is not cleaned
	d.clean(names)
}

func (d *Dir) clean(names []string) {
	for _, name := range names {
		if _, temporary, ok := parseFolderName(name); ok && temporary {
			d.cleanUp(name)
		}
	}
}

func (d *Dir) cleanUp(name string) {
	folder, err := d.at.Sub(name)
	if err != nil {
		return
	}
	defer folder.Close()
	f, err := folder.OpenFile(ownerFile, os.O_RDWR)
	switch {
	case err == nil:
		if lock(f) == nil && d.at.Leads(name, folder) {
			_ = d.at.RemoveAll(name)
		}
		_ = unlock(f) // it was only read
	case errors.Is(err, fs.ErrNotExist):
		if e, err := d.at.Lstat(name); err == nil && time.Since(e.Modified) > leftoverAge {
			_ = d.at.RemoveAll(name)
		}
	}
}

// Has says whether there is something of that name.
func (d *Dir) Has(name string) bool {
	_, err := d.at.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// Look returns a ring's owner, and whether a process has the ring. For that the lock is taken for a
// moment if it is free, and a logger may find it taken then: not if accept (nil: each) does not
// want the ring.
func (d *Dir) Look(name string, accept func(Owner) bool) (o Owner, live bool, err error) {
	s, f, err := d.open(name)
	if err != nil {
		return o, false, err
	}
	defer s.close()
	if o, err = readOwner(s.folder.Path(), f); err != nil || accept != nil && !accept(o) {
		return o, false, errors.Join(err, f.Close())
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	_ = unlock(f) // a child that is being started just now must not keep it
	if errors.Is(err, unix.EWOULDBLOCK) {
		return o, true, nil
	}
	return o, false, os.NewSyscallError("flock "+f.Name(), err)
}

// Adopt takes one ring, if accept (nil: each) wants it. Neither ring nor error: not wanted. The
// error wraps fs.ErrNotExist if it has gone, [ErrLocked] if a living process has it, and
// [ErrTooLarge] if it is larger than MaxSize.
func (d *Dir) Adopt(name string, accept func(Owner) bool, report func(error)) (r *Ring, err error) {
	s, f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			_ = unlock(f) // it was only read
			s.close()
		}
	}()
	o, bad := readOwner(s.folder.Path(), f)
	if bad == nil && o.BootID == d.boot && accept != nil && !accept(o) {
		return nil, nil // and does not get in the way of the process that accepts it
	}
	if err := lock(f); err != nil {
		return nil, err
	}
	if !s.folder.Is(ownerFile, f) || !d.at.Leads(name, s.folder) {
		return nil, fs.ErrNotExist // another was first, and has finished
	}
	if bad != nil {
		return nil, bad
	}
	if o.BootID != d.boot {
		return nil, fmt.Errorf("%w: its owner ran before the machine was last started", ErrCorrupt)
	}
	s.in = d.at.use()
	if report == nil {
		report = func(error) {}
	}
	return mapAdopted(s, f, o, d.MaxSize, report)
}

// open opens the folder and the owner file of a ring.
func (d *Dir) open(name string) (s *site, f *os.File, err error) {
	s = &site{name: name}
	path := filepath.Join(d.at.Path(), name)
	if s.folder, err = d.at.Sub(name); err != nil {
		switch {
		case errors.Is(err, unix.ELOOP):
			err = fmt.Errorf("%w: %s is a symbolic link", ErrUnsafe, path)
		case errors.Is(err, unix.ENOTDIR):
			err = fmt.Errorf("%w: %s is no folder", ErrUnsafe, path)
		case errors.Is(err, within.ErrOwner):
			err = fmt.Errorf("%w: %w", ErrUnsafe, err)
		}
		return nil, nil, err
	}
	if s.folder.Mode().Perm()&0o077 != 0 {
		return nil, nil, errors.Join(fmt.Errorf("%w: %s", errOpen, path), s.folder.Close())
	}
	f, err = s.folder.OpenFile(ownerFile, os.O_RDWR)
	if err == nil {
		return s, f, nil
	}
	if errors.Is(err, fs.ErrNotExist) && d.at.Leads(name, s.folder) { // else its owner has finished just now
		err = fmt.Errorf("%w: no owner file", ErrCorrupt)
	}
	return nil, nil, errors.Join(err, s.folder.Close())
}

// mapAdopted maps the memory of a ring whose lock f has.
func mapAdopted(at *site, f *os.File, o Owner, limit int64, report func(error)) (r *Ring, err error) {
	mem, err := at.folder.OpenFile(ringFile, os.O_RDWR)
	if errors.Is(err, within.ErrKind) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrCorrupt, err) //nolint:errorlint // not to be taken for a ring that is gone
	}
	defer func() {
		if r == nil {
			mem.Close()
		}
	}()
	fi, err := mem.Stat()
	if err != nil {
		return nil, err
	}
	start := make([]byte, headLen)
	if _, err := io.ReadFull(mem, start); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, mem.Name(), err)
	}
	its := newRing()
	its.shared, its.path = true, at.folder.Path()
	if err := its.head.parse(start, fi.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", mem.Name(), err)
	}
	if hex.EncodeToString(its.head.id[:]) != o.RingID {
		return nil, fmt.Errorf("%w: owner and ring do not belong together", ErrCorrupt)
	}
	size := its.head.segments + its.head.size
	if size != int64(int(size)) || limit > 0 && its.head.size > limit {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, its.head.size)
	}
	if fi.Size() < size {
		report(fmt.Errorf("%w: %s has only %d of its %d bytes", ErrCorrupt, mem.Name(), fi.Size(), size))
	}
	// What the file lacks is mapped all the same: reading it faults, and faults are understood.
	its.mem, err = unix.Mmap(int(mem.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("ring: map %s: %w", mem.Name(), err)
	}
	its.home = &home{lock: f, ring: mem, owner: o, site: at}
	its.backing = its.home.backing(its.mem)
	if fi.Size() >= size && isTmpfs(mem) {
		its.backing.hole = func(off int64) int64 { return dataEnd(mem, off) }
	}
	if err := errors.Join(its.begin(), keepFromChildren(its.mem)); err != nil {
		return nil, errors.Join(err, unix.Munmap(its.mem))
	}
	its.backing.states.Store(wholePages(stateHeader + int64(len(its.state)))) // its owner had that, at least
	if its.head.version == 1 {
		its.backing.states.Store(stateRoom)
	}
	held.Store(its.path, true)
	return its, nil
}
