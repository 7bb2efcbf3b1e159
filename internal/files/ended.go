// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// When a file of a family is free, to be compressed or deleted. Of this process:
//
//	rotated                  once its lines are committed: it is not held
//	of a day or hour past    the same, and nothing waits that may be in it (see below)
//	any other                never
//
// Where a dead process had the id of this one, as in containers, and left a ring or a spill for
// this path, both are free only as what successors may have written is (see below).
//
// Of another process, whose id is in the name, rotated or not, all of this:
//
//   - No process has that id. One that has it may write the file, though it has nothing to do with
//     the one that made it: it waits for that one's end, too.
//   - There is no ring and no spill of a process of that id: see Options.Awaited.
//   - It was not changed since the oldest process began that has died and left a ring or a spill
//     for this path.
//     For a successor writes what that process left into files of its own, and may die as well: then
//     lines of the first are looked for in files of the second.
//   - The exclusive lock can be had. A writer has the shared one, as long as its file is open, and
//     so has a child that got the open file from it.
//
// The names are listed before the processes are looked at: a process that begins later has a lock
// before it writes, and looks then whether the file is still at its path.

// present is which processes there are, and what dead ones left.
type present struct {
	alive   map[int]bool // those that were asked for
	awaited map[int]bool
	reused  map[int]bool // a dead process with something left for this path had that id
	since   time.Time    // the oldest dead one with something left began then; zero: there is none
	err     error        // why that is not known
}

// lives reports whether a process has an id.
func (p *present) lives(pid int) bool {
	is, known := p.alive[pid]
	if !known {
		is = processLives(pid)
		p.alive[pid] = is
	}
	return is
}

// processes looks at them.
func (k *keeper) processes() *present {
	p := &present{alive: map[int]bool{}, awaited: map[int]bool{}, reused: map[int]bool{}}
	if k.awaited == nil {
		return p
	}
	all, err := k.awaited()
	p.err = err
	for _, o := range all {
		p.awaited[o.PID] = true
		if o.Made.IsZero() || !o.Dead && p.lives(o.PID) && !beganAfter(o.PID, o.Made) {
			continue
		}
		p.reused[o.PID] = true
		if p.since.IsZero() || o.Made.Before(p.since) {
			p.since = o.Made
		}
	}
	return p
}

// beganAfter reports whether the process that has an id now began when the one that had it already
// had what it left.
func beganAfter(pid int, made time.Time) bool {
	const unsure = 100 * time.Millisecond // of when a process began; an id comes again only later
	began, known := processBegan(pid)
	return known && began.After(made.Add(unsure))
}

// foreign reports whether a file is another process's.
func (k *keeper) foreign(it *member) bool { return it.pid != 0 && it.pid != k.pid }

// written reports whether somebody may write a file.
func (k *keeper) written(m *family, it *member, p *present) bool {
	switch {
	case !it.current:
		return false
	case k.foreign(it):
		return p.lives(it.pid) || p.awaited[it.pid]
	}
	return !m.varies || !it.past || k.holds(it.path)
}

// isFree reports whether a file that is not written is free, as far as that is seen without its
// lock.
func (k *keeper) isFree(it *member, p *present) bool {
	if !k.foreign(it) && !it.current && !p.reused[k.pid] {
		return true
	}
	if p.err != nil || k.foreign(it) && (p.lives(it.pid) || p.awaited[it.pid]) {
		return false
	}
	return p.since.IsZero() || it.changed.Add(clockTick).Before(p.since)
}

// look deletes and compresses files of a family, and reports whether there is a reason to look
// again. What takes no time comes first: it is done although there be no time for the rest.
func (k *keeper) look(m *family) (again bool, err error) {
	start := time.Now()
	all, err := m.members(start, k.rotation.MaxTotal > 0, k.stop)
	k.listing = time.Since(start)
	if err != nil {
		return m.varies, err
	}
	p := &present{}
	if m.varies {
		p = k.processes()
	}
	var total int64
	all = slices.DeleteFunc(all, func(it member) bool {
		if k.written(m, &it, p) {
			total += it.size
			return true
		}
		return false
	})
	slices.SortFunc(all, func(a, b member) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.path, a.path)) })
	r := &k.rotation
	var kept, gone []*member
	for i := range all {
		it := &all[i]
		total += it.size
		over := r.Keep > 0 && i >= r.Keep || r.MaxTotal > 0 && total > r.MaxTotal || r.MaxAge > 0 &&
			time.Since(it.at) > r.MaxAge
		switch {
		case k.holds(it.path): // it comes up again when it is free
		case !k.isFree(it, p):
		case over || !it.whole():
			gone = append(gone, it)
		default:
			kept = append(kept, it)
		}
	}
	t := fileErrors{first: p.err}
	for _, it := range slices.Backward(gone) {
		if isClosed(k.stop) {
			return false, errStopped
		}
		if it.current || k.foreign(it) {
			t.note(it.removeLocked())
		} else {
			t.note(it.remove())
		}
		m.tidy(it.path)
	}
	for _, it := range kept {
		err := k.compress(it)
		if errors.Is(err, errStopped) {
			return false, err
		}
		t.note(err)
	}
	err = t.err()
	return m.varies || r.MaxTotal > 0 || r.MaxAge > 0 && len(kept) > 0 || err != nil, err
}

// fileErrors are what went wrong with many files.
type fileErrors struct {
	first error
	more  int
	busy  bool
}

func (t *fileErrors) note(err error) {
	switch {
	case err == nil, errors.Is(err, errGone):
	case errors.Is(err, errBusy):
		t.busy = true
	case t.first == nil:
		t.first = err
	default:
		t.more++
	}
}

// err is errBusy where nothing else is wrong.
func (t *fileErrors) err() error {
	switch {
	case t.more > 0:
		return fmt.Errorf("%w; and %d more", t.first, t.more)
	case t.first == nil && t.busy:
		return errBusy
	}
	return t.first
}

// compress compresses a file that is kept, where that is wanted, and takes away what is left of a
// compression that nobody goes on with.
func (k *keeper) compress(it *member) error {
	switch {
	case k.rotation.Compress != "" && it.forms[plainForm]:
		if it.current {
			if err := it.setAside(); err != nil {
				return err
			}
		}
		return compress(it.path, k.rotation.Compress, k.stop)
	case it.forms[unfinishedForm]:
		rest := rotated{path: it.path, forms: [formCount]bool{unfinishedForm: true}}
		return rest.removeForms()
	}
	return nil
}

// setAside gives a file that nobody writes the name of a rotated one, of the time of its last line.
// So a process that gets the id of its writer begins a new one.
func (it *member) setAside() error {
	f, err := it.lock()
	if err != nil {
		return err
	}
	defer f.Close()
	unlock, ok := awaitDir(it.path)
	if !ok {
		return errBusy
	}
	defer unlock()
	name, err := freeFrom(it.path, it.at)
	if err != nil {
		return err
	}
	if err := os.Rename(it.path, name); err != nil {
		return err
	}
	it.path, it.current = name, false
	return nil
}

// lock opens the file at a path and locks it for this process alone. The error is errBusy if others
// have it, errGone if it is not at its path any more, or another if there are no such locks.
func (r *rotated) lock() (f *os.File, err error) {
	f, err = os.OpenFile(r.path, readFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "lock", Path: r.path, Err: fmt.Errorf("%w: %s", ErrKind, kindOf(info.Mode()))}
	}
	if err == nil {
		err = claimFile(f)
	}
	if err == nil {
		id, errID := idOf(f, info)
		if now, _, errNow := idAt(r.path); errID != nil || errNow != nil || now != id {
			err = errGone
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeLocked deletes a file that another process wrote, or that nobody has rotated.
func (it *member) removeLocked() error {
	if it.forms[plainForm] {
		f, err := it.lock()
		if err != nil {
			return err
		}
		defer f.Close()
	}
	return it.removeForms()
}

// remove deletes all forms of a rotated file that nobody writes.
func (r *rotated) remove() error {
	if r.forms[plainForm] {
		f, err := os.OpenFile(r.path, readFlags, 0)
		if err == nil { // if it may not be read, nobody knows whether it is locked
			free := lockFile(f, true)
			if !removeOpen {
				f.Close()
			}
			defer f.Close()
			if !free {
				return errBusy
			}
		}
	}
	return r.removeForms()
}
