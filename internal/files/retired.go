// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
)

// A file that is rotated while lines in it wait for their commit is retired: it stays known under
// its new name until they are committed. States name it by the path that it had, and by its inode:
//
//	in the state   /log/app.jsonl, inode 7, length 100        /log/app.jsonl, inode 8, length 0
//	                              │                                          │
//	on disk        /log/app-20261121T020304.123.jsonl         /log/app.jsonl
//
// So it is with one that another program renames in its directory, as logrotate does: app.jsonl.1.
//
// So a state from before the rotation still holds, and a process that is killed at any moment
// around it leaves nothing that its successor does not find: what is not at its path is looked for
// among the rotated files of the path. The lines come again in the same order and go from one file
// to the next as they do between the files of several processes; see index.fileOf.
//
// Until the commit no keeper may compress or delete the file. The own one is told; those of other
// processes need the exclusive lock, and the file stays open with the shared one as long as MaxOpen
// allows.

// retire leaves the file of f, which is at another path now, for a new one.
func (r *rotator) retire(f *file, to string) {
	old := &file{
		path: to, of: f.path, writer: f.writer,
		known: f.known, inode: f.inode, length: f.length, doubt: f.doubt, found: f.found, end: f.end, tail: f.tail,
		last:   f.last,
		handle: f.handle, id: f.id, touched: true, dirty: f.dirty, used: f.used,
	}
	switch {
	case old.end >= 0:
	case f.handle != nil:
		old.end = f.present()
	default:
		old.end = math.MaxInt64
	}
	if f.handle != nil {
		r.handles.remove(f)
		r.handles.pushOldest(old) // the first to be closed: the others may be about to be written
	}
	r.index.add(old)
	f.renew()
}

// moved leaves a file that is not at its path any more: another process has rotated it, or somebody
// took it away.
func (r *rotator) moved(f *file) error {
	if f.touched && f.torn == 0 && f.long == 0 && !f.expected && !r.index.foreign(f) {
		if to, _ := movedAs(f.path, f.id.inode); to != "" {
			r.keeper.hold(to)
			r.retire(f, to)
			return nil
		}
	}
	f.torn, f.long = 0, 0
	r.recorder.hasty = true
	if f.handle == nil {
		return nil
	}
	return r.handles.close(f)
}

// pursue finds a file that lines are expected in where it is now, if it was renamed since the Set
// was opened: by another output that has its path, or by another program. It reports whether it
// was.
func (r *rotator) pursue(f *file) bool {
	if !f.expected || !f.known {
		return false
	}
	if id, _, err := idAt(f.path); err == nil && id.inode == f.inode || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	to, _ := movedAs(cmp.Or(f.of, f.path), f.inode)
	if to == "" || r.index.files[to] != nil {
		return false
	}
	r.keeper.hold(to)
	r.keeper.free(f.path)
	r.index.retire(f, to)
	return true
}

// dismiss leaves a file that no state names any more. It is the keepers' as soon as that is
// committed; a retired one stays open, with its lock, until then.
func (r *rotator) dismiss(f *file) {
	if f.of == "" && f.handle != nil {
		if err := r.handles.close(f); err != nil {
			r.o.Report(err) // it is on disk
		}
	}
	if f.of != "" || r.keeper != nil {
		r.dismissed = append(r.dismissed, f)
	}
}

// release gives the keepers what was dismissed: what Sync returned is committed by now.
func (r *rotator) release() error {
	var errs []error
	for _, f := range r.dismissed {
		if f.of != "" && f.handle != nil {
			errs = append(errs, r.handles.close(f))
		}
		if r.keeper == nil || f.of == "" && r.index.files[f.path] != nil { // it is written again
			continue
		}
		r.keeper.free(f.path)
		if f.of != "" {
			r.keeper.tend(r.familyOf(f.of, f.writer))
		}
	}
	r.dismissed = nil
	return errors.Join(errs...)
}
