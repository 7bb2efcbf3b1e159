// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"errors"
	"fmt"
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
	d, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.at.Names(0)
	if err != nil {
		return nil, err
	}
	d.clean(names)
	var rings []*Ring
	name = cleanName(name)
	for _, n := range names {
		if !strings.HasPrefix(n, name) {
			continue
		}
		if its, temporary, ok := parseFolderName(n); !ok || temporary || its != name {
			continue
		}
		if _, mine := held.Load(filepath.Join(dir, n)); mine {
			continue
		}
		r, err := d.Adopt(n, accept, report)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrLocked) {
			report(fmt.Errorf("ring: %s is left as it is: %w", filepath.Join(dir, n), err))
		}
		if r != nil {
			rings = append(rings, r)
		}
	}
	slices.SortStableFunc(rings, func(a, b *Ring) int { return a.home.owner.Made.Compare(b.home.owner.Made) })
	return rings, nil
}

// ownerLives says that a process holds the ring's lock.
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
