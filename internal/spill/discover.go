// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

// Discover opens the spills that dead processes of this name left, oldest first. rings are the
// names of the rings that were adopted; a spill whose ring is another process's is left to that.
func (f *Folder) Discover(rings []string) []*Spill {
	found, _ := f.discover(rings, time.Now().Add(lockPatience)) // what is left alone was told
	return found
}

// DiscoverWhole is Discover for one ring. It waits for no lock, and finds nothing where a spill of
// that ring cannot be had. The error says why; it was told, unless a process has the spill just
// now.
func (f *Folder) DiscoverWhole(ring string) ([]*Spill, error) {
	found, missed := f.discover([]string{ring}, time.Time{})
	if missed != nil {
		for _, sp := range found {
			_ = sp.Close() // it was only read
		}
		return nil, missed
	}
	return found, nil
}

// discover says in missed why a spill of one of the rings is left alone. It waits for locks until
// then.
func (f *Folder) discover(rings []string, until time.Time) (found []*Spill, missed error) {
	f.listed, f.discovered = 0, 0
	dirs, err := f.list(f.opt.Dir)
	if f.opt.Dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		f.report(fmt.Errorf("looking for spills: %w", err))
		return nil, err
	}
	for _, d := range dirs {
		if name, gone := strings.CutSuffix(d.Name, goneSuffix); gone && d.Dir && f.named(name) && f.in == nil {
			_ = os.RemoveAll(filepath.Join(f.opt.Dir, d.Name)) // its content is read by nothing
			continue
		}
		sp := &Spill{folder: f, Dir: filepath.Join(f.opt.Dir, d.Name)}
		if !d.Dir && slices.Contains(rings, d.Name) {
			missed = errors.Join(missed, fmt.Errorf("%s is no folder", sp.Dir))
		}
		if !d.Dir || !f.named(d.Name) {
			continue
		}
		who, err := f.readOwner(sp.Dir)
		of := d.Name
		if f.named(who.Ring) {
			of = who.Ring
		}
		leave := func(err error, tell bool) {
			if tell {
				f.report(fmt.Errorf("%s is left alone: %w", sp.Dir, err))
			}
			if slices.Contains(rings, of) {
				missed = errors.Join(missed, err)
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.abandoned(sp.Dir)
			continue
		case err != nil:
			leave(err, true)
			continue
		case string(who.Identity) != string(f.opt.Identity) || !f.orphan(of, rings):
			continue
		}
		if err := f.bound(d.Name, len(found)); err != nil {
			leave(err, true)
			continue
		}
		sp.Made, sp.Paired = who.Made, slices.Contains(rings, of)
		switch err := f.openOrphan(sp, until); {
		case errors.Is(err, errDisowned):
			f.abandoned(sp.Dir)
			continue
		case err != nil:
			leave(err, !errors.Is(err, journal.ErrLocked))
			continue
		}
		if err := sp.list(); err != nil {
			leave(err, true)
			_ = sp.close() // told already
			continue
		}
		found = append(found, sp)
	}
	slices.SortStableFunc(found, func(a, b *Spill) int { return a.Made.Compare(b.Made) })
	return found, missed
}

// lockPatience is how long one Discover waits for locks.
const lockPatience = 20 * retryAfter

var errDisowned = errors.New("spill: its owner has taken it away")

// openOrphan opens a spill that may belong to an adopted ring: then its owner is dead, but the
// kernel need not have let go of all its locks yet; or its owner has closed, but a disk that was
// slow still has the spill, and it is taken away when that comes back.
func (f *Folder) openOrphan(sp *Spill, until time.Time) error {
	for {
		if f.disowned(sp.Dir) {
			return errDisowned
		}
		err := f.open(sp)
		if f.disowned(sp.Dir) { // while it was opened
			if err == nil {
				sp.gone.Store(true)
				_ = sp.close() // nothing was written
			}
			return errDisowned
		}
		if !sp.Paired || time.Now().After(until) || !errors.Is(err, journal.ErrLocked) || f.over() {
			return err
		}
		f.pause()
	}
}

// disowned says that the spill is being taken away, or is gone.
func (f *Folder) disowned(dir string) bool {
	_, err := f.readOwner(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// abandoned removes a folder without an owner's file, if nothing in it matters.
func (f *Folder) abandoned(dir string) {
	if f.in == nil {
		f.sweep(dir)
	} else {
		f.finish(filepath.Base(dir))
	}
}

// sweep removes a folder without an owner's file: its process died while it made or removed it. A
// process that is making it just now finds that it is gone, and makes another.
func (f *Folder) sweep(dir string) {
	if !f.ours(dir) {
		return
	}
	_, err := os.Lstat(filepath.Join(dir, emptyFile))
	empty := err == nil
	sp := &Spill{folder: f, Dir: dir}
	if err := f.open(sp); err != nil {
		if empty && !errors.Is(err, journal.ErrLocked) {
			f.clear(dir) // what is left of a journal cannot always be opened
		}
		return
	}
	// What is left of a journal may look as if nothing of it had been read: the cursor went first.
	some := false
	if !empty {
		_, some, err = sp.rd.TryNext()
	}
	sp.gone.Store(true)
	_ = sp.close() // nothing was written
	if err == nil && !some {
		f.clear(dir)
	}
}

// finish goes on with the removal of a spill that a kill cut short, by an open folder: the file
// that says that nothing in it matters is there. That goes last.
func (f *Folder) finish(name string) {
	in, err := f.in.Sub(name)
	if err != nil {
		return
	}
	defer in.Close()
	if _, err := in.Lstat(emptyFile); err != nil {
		return
	}
	lock, err := journal.Within(in).Lock(filepath.Join(in.Path(), "lock"))
	if err != nil {
		return
	}
	defer lock.Close()
	names, err := in.Names(0)
	if _, ownerErr := in.Lstat(ownerFile); err != nil || !errors.Is(ownerErr, fs.ErrNotExist) {
		return // it was made meanwhile
	}
	_ = in.RemoveDir(quarantine) // fails unless it is empty, as it should
	if _, err := in.Lstat(quarantine); err == nil {
		return // it must be looked at
	}
	for _, n := range names {
		if n != emptyFile {
			err = errors.Join(err, in.RemoveAll(n))
		}
	}
	if err == nil && in.Remove(emptyFile) == nil {
		_ = f.in.RemoveDir(name) // else it is another one by now
	}
}

// named says that freshName or a ring could have given a folder its name, in a process of our name.
// Dir may hold what is another's.
func (f *Folder) named(folder string) bool {
	name, ok := spillOf(folder)
	return ok && name == cleanName(f.opt.Name)
}

// ours says of a folder without an owner's file that nothing lies in it but what a Folder and its
// journals put into spills.
func (f *Folder) ours(dir string) bool {
	all, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		switch name := e.Name(); name {
		case "lock", "identity", "identity.tmp", ownerFile, ownerFile + ".new", emptyFile, quarantine:
			return false
		default:
			return !strings.HasPrefix(name, "seg-") && !strings.HasPrefix(name, "cursor-") &&
				!strings.HasPrefix(name, "rescue-")
		}
	})
}

// orphan says that a spill's ring, by its name, is not another process's, nor will be: it is ours,
// or gone, or can never be adopted.
func (f *Folder) orphan(name string, rings []string) bool {
	switch {
	case slices.Contains(rings, name):
		return true
	case f.opt.Rings != nil:
		return !f.opt.Rings(name)
	case f.opt.Shm == "":
		return true
	}
	path := filepath.Join(f.opt.Shm, name)
	if _, err := os.Lstat(path); err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	all, err := ring.Inspect(path)
	if err != nil || len(all) != 1 || all[0].Live {
		return errors.Is(err, ring.ErrNone)
	}
	boot := f.opt.BootID()
	return errors.Is(all[0].Err, ring.ErrCorrupt) || boot != "" && all[0].Owner.BootID != boot
}
