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
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// home is the place of a ring in shared memory: its folder, and the lock on the owner file. A held
// lock means that the owner is alive.
type home struct {
	lock  *os.File
	ring  *os.File
	owner Owner
	site  *site // of an adopted ring
}

// leftoverAge is for how long a temporary folder without an owner file is not removed: its maker
// may still be at work.
const leftoverAge = time.Minute

// held has the paths of the rings that this process has: of many loggers of a process each looks
// for what dead ones left, and need not open what all others have.
var held sync.Map

func moveIn(o *Options, dir string, born time.Time, m *memory, furnish func() error) (*home, error) {
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("ring: which start of the machine this is: %w", err)
	}
	h := &home{owner: Owner{
		Name: o.Name, PID: os.Getpid(), BootID: boot, MachineID: machineID(), RingID: hex.EncodeToString(m.head.id[:]),
		Identity: append([]byte(nil), o.Identity...), Made: born,
	}}
	final := filepath.Join(dir, folderName(o.Name, h.owner.PID, m.head.id))
	temporary := final + temporarySuffix
	h.owner.Path = final
	if err := os.Mkdir(temporary, 0o700); err != nil {
		return nil, err
	}
	undo := func(err error) (*home, error) {
		if m.mem != nil {
			err = errors.Join(err, unix.Munmap(m.mem))
			m.mem = nil
		}
		for _, f := range []*os.File{h.ring, h.lock} {
			if f != nil {
				err = errors.Join(err, f.Close())
			}
		}
		_ = os.RemoveAll(temporary)
		return nil, err
	}
	h.lock, err = os.OpenFile(filepath.Join(temporary, ownerFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return undo(err)
	}
	if err := lock(h.lock); err != nil {
		return undo(err)
	}
	if _, err := h.lock.Write(h.owner.text()); err != nil {
		return undo(err)
	}
	h.ring, err = os.OpenFile(filepath.Join(temporary, ringFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return undo(err)
	}
	size := segmentsAt + o.Size
	if err := h.ring.Truncate(size); err != nil {
		return undo(err)
	}
	if m.mem, err = unix.Mmap(int(h.ring.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		m.mem = nil
		return undo(fmt.Errorf("ring: map %s: %w", h.ring.Name(), err))
	}
	m.shared = true
	if err := keepFromChildren(m.mem); err != nil {
		return undo(err)
	}
	m.backing = h.backing(m.mem)
	if err := furnish(); err != nil {
		return undo(fmt.Errorf("ring: no room in %s: %w", dir, err))
	}
	if err := m.touch(func() { m.head.put(m.mem) }); err != nil {
		return undo(err)
	}
	if err := os.Rename(temporary, final); err != nil {
		return undo(err)
	}
	m.path = final
	held.Store(final, true)
	return h, nil
}

// backing is where the memory of the file comes from, and where it goes.
func (h *home) backing(mem []byte) *backing {
	b := newBacking(func(from, to int64) error { return allocate(h.ring, from, to) })
	b.populate = func(from, to int64) { populate(mem[from:to]) }
	b.overwrites = allocateOverwrites(h.ring)
	b.free = func() int64 { return room(h.ring) }
	if canPunch {
		b.punch = func(from, to int64) error { return punch(h.ring, from, to) }
	}
	return b
}

func (h *home) unmap(mem []byte) error {
	return errors.Join(os.NewSyscallError("munmap", unix.Munmap(mem)), h.ring.Close())
}

// leave removes the folder, if so told, and lets go of the lock.
func (h *home) leave(path string, remove bool) error {
	var err error
	switch {
	case !remove:
	case h.site != nil:
		err = h.site.remove()
	default:
		// First out of sight, so that no process finds half a ring.
		temporary := path + temporarySuffix
		if err = os.Rename(path, temporary); err == nil {
			for _, name := range []string{ringFile, ownerFile} {
				_ = os.Remove(filepath.Join(temporary, name))
			}
			err = os.RemoveAll(temporary)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil // another process has tidied up
		}
	}
	if h.site != nil {
		h.site.close()
	}
	held.Delete(path)
	return errors.Join(err, unlock(h.lock))
}

// ensureDir makes the folder of rings, and refuses one in which others could put things.
func ensureDir(dir string, report func(error)) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	err = checkDir(dir)
	if errors.Is(err, errOpen) {
		// It is the user's own: whatever others may have put there is theirs, and nobody takes that
		// for a ring.
		report(fmt.Errorf("%w; it is shut now", err))
		err = os.Chmod(dir, 0o700)
	}
	return dir, err
}

var errOpen = fmt.Errorf("%w: it is open to others", ErrUnsafe)

// checkDir says why a folder cannot be trusted.
func checkDir(dir string) error {
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch mine := isMine(fi); {
	case fi.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%w: %s is a symbolic link", ErrUnsafe, dir)
	case !fi.IsDir():
		return fmt.Errorf("%w: %s is no folder", ErrUnsafe, dir)
	case !mine:
		return fmt.Errorf("%w: %s belongs to another user", ErrUnsafe, dir)
	// Root's own, but to shut it would be to shut out everybody else.
	case fi.Mode()&fs.ModeSticky != 0 && fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%w: %s is meant for everybody, as /tmp is: name a folder in it", ErrUnsafe, dir)
	case fi.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: %s", errOpen, dir)
	}
	return nil
}

func isMine(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Uid == uint32(os.Geteuid())
}

// lock takes the lock, or says that it is held. It is of the open file: a process that holds
// two files open holds two locks, a forked child that keeps the descriptor keeps the lock, and it
// goes when the last of them is closed.
func lock(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("%w: %s", ErrLocked, f.Name())
		case !errors.Is(err, unix.EINTR):
			return os.NewSyscallError("flock "+f.Name(), err)
		}
	}
}

// unlock closes a locked file, and before that lets go of the lock: a child that is being started
// just now has the file open, too, until it runs its program.
func unlock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return errors.Join(os.NewSyscallError("flock "+f.Name(), err), f.Close())
}

// readOwner reads an owner file.
func readOwner(path string, f *os.File) (o Owner, err error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 8*maxIdentity))
	if err != nil {
		return o, err
	}
	err = o.parse(b)
	o.Path = path
	return o, err
}

// machineID is what the machine calls itself, empty if it does not.
func machineID() string {
	b, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return ""
	}
	return cleanName(strings.TrimSpace(string(b)))
}
