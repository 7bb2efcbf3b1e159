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
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Adopt takes over the rings in dir that have the name, whose owners are dead and which accept
// wants, the oldest first. (accept may be asked about living owners as well; the lock, which the
// kernel lets go when an owner dies, decides.) An adopted ring takes no appends; Next returns what
// its owner left.
//
// What cannot be used, because its files cannot be read or the machine has been started again
// since, is reported and left as it is. A dir that is not there holds no rings. An error, of a
// folder that cannot be trusted or read, does not mean that the rings returned beside it are not
// good.
func Adopt(dir, name string, accept func(Owner) bool, report func(error)) ([]*Ring, error) {
	if report == nil {
		report = func(error) {}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := checkDir(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	names, err := readNames(dir)
	if err != nil {
		return nil, err
	}
	cleanLeftovers(dir, names)
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	var rings []*Ring
	name = cleanName(name)
	for _, n := range names {
		if !strings.HasPrefix(n, name) {
			continue
		}
		if its, temporary, ok := parseFolderName(n); !ok || temporary || its != name {
			continue
		}
		path := filepath.Join(dir, n)
		if _, mine := held.Load(path); mine {
			continue
		}
		r, err := adopt(path, boot, accept, report)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrLocked) {
			report(fmt.Errorf("ring: %s is left as it is: %w", path, err))
		}
		if r != nil {
			rings = append(rings, r)
		}
	}
	slices.SortStableFunc(rings, func(a, b *Ring) int { return a.home.owner.Made.Compare(b.home.owner.Made) })
	return rings, nil
}

// adopt takes one ring. Neither ring nor error: not wanted.
func adopt(path, boot string, accept func(Owner) bool, report func(error)) (r *Ring, err error) {
	f, err := openOwner(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, still := os.Lstat(path); still == nil { // else its owner has finished just now
			return nil, fmt.Errorf("%w: no owner file", ErrCorrupt)
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if r == nil {
			f.Close()
		}
	}()
	o, bad := readOwner(path, f)
	if bad == nil && o.BootID == boot && accept != nil && !accept(o) {
		return nil, nil // and does not get in the way of whoever accepts it
	}
	if err := lock(f); err != nil {
		return nil, err
	}
	if !sameFile(filepath.Join(path, ownerFile), f) {
		return nil, fs.ErrNotExist // another was first, and has finished
	}
	if bad != nil {
		return nil, bad
	}
	if o.BootID != boot {
		return nil, fmt.Errorf("%w: its owner ran before the machine was last started", ErrCorrupt)
	}
	return mapAdopted(path, f, o, report)
}

func mapAdopted(path string, f *os.File, o Owner, report func(error)) (r *Ring, err error) {
	mem, err := os.OpenFile(filepath.Join(path, ringFile), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
	if !fi.Mode().IsRegular() { // to read from a pipe would be to wait for ever
		return nil, fmt.Errorf("%w: %s is no file", ErrCorrupt, mem.Name())
	}
	start := make([]byte, headLen)
	if _, err := io.ReadFull(mem, start); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, mem.Name(), err)
	}
	its := newRing()
	its.shared, its.path = true, path
	if err := its.head.parse(start, fi.Size()); err != nil {
		return nil, fmt.Errorf("%s: %w", mem.Name(), err)
	}
	if hex.EncodeToString(its.head.id[:]) != o.RingID {
		return nil, fmt.Errorf("%w: owner and ring do not belong together", ErrCorrupt)
	}
	size := its.head.segments + its.head.size
	if size != int64(int(size)) {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	if fi.Size() < size {
		report(fmt.Errorf("%w: %s has only %d of its %d bytes", ErrCorrupt, mem.Name(), fi.Size(), size))
	}
	// What the file lacks is mapped all the same: reading it faults, and faults are understood.
	its.mem, err = unix.Mmap(int(mem.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("ring: map %s: %w", mem.Name(), err)
	}
	its.home = &home{lock: f, ring: mem, owner: o}
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
	held.Store(path, true)
	return its, nil
}

// ownerLives says that somebody has the ring.
func ownerLives(path string) bool {
	name := filepath.Join(path, ownerFile)
	if checkRegular(name) != nil {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
