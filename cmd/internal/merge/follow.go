// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	lookEvery = 200 * time.Millisecond
	findEvery = time.Second     // new files
	lastLook  = 2 * time.Second // when ctx has ended
	missEvery = time.Minute     // a file without its name is not waited for any longer
)

// A follower reads plain files as they grow. What one look brings is sorted together, and waits for
// Slack of the real time, so that what other processes write later finds its place.
//
// A path whose file is another one than before was rotated: the rest of the old one is read, by the
// open file or under its new name in the same folder, then the new one from its start. A file that
// became shorter was cut, and is read from its start.
type follower struct {
	*merge
	files []*input
	known map[string]os.FileInfo // what was found at paths
	left  []leftFile
	looks []look
	place int // of the next new file
	found time.Time
}

// A leftFile was read under a path that has another file now.
type leftFile struct {
	same os.FileInfo
	at   int64 // how far
}

// A look is when lines were read, and the latest time of those.
type look struct {
	at     time.Time
	latest int64
}

// follow goes on until ctx ends.
func (m *merge) follow(ctx context.Context, paths []string) error {
	w := &follower{merge: m, known: map[string]os.FileInfo{}, place: len(paths), found: time.Now()}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			w.known[path] = info
		}
	}
	for _, f := range m.files {
		if f.follow {
			w.files = append(w.files, f)
		}
	}
	if !m.held.empty() {
		w.looks = append(w.looks, look{time.Now(), m.held.max})
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := m.out.Flush(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			w.endWith(last)
			return w.look(time.Now())
		case <-tick.C:
		}
		if err := w.look(time.Now()); err != nil {
			return err
		}
	}
}

// look reads what is new, and writes what has waited long enough.
func (w *follower) look(now time.Time) error {
	if now.Sub(w.found) >= findEvery {
		w.found = now
		w.find()
	}
	latest, kept := int64(math.MinInt64), w.files[:0]
	for _, f := range w.files {
		stays, err := w.read(f, now, &latest)
		if err != nil {
			return err
		}
		if stays {
			kept = append(kept, f)
		} else {
			f.close()
		}
	}
	clear(w.files[len(kept):])
	w.files = kept
	if latest > math.MinInt64 {
		w.looks = append(w.looks, look{now, latest})
	}
	for len(w.looks) > 0 && now.Sub(w.looks[0].at) >= w.Slack {
		until := w.looks[0].latest
		w.looks = w.looks[1:]
		for until < math.MaxInt64 && w.held.before(until+1) {
			if err := w.held.release(w.writeHeld); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads what is new in a file; false when it is to be read no more.
func (w *follower) read(f *input, now time.Time, latest *int64) (stays bool, err error) {
	info, err := os.Stat(f.path)
	switch {
	case err != nil || !info.Mode().IsRegular():
		if f.missing.IsZero() {
			f.missing = now
		}
		if now.Sub(f.missing) < missEvery {
			return true, w.open(f, latest)
		}
		delete(w.known, f.path)
		return false, w.rest(f, latest)
	case !os.SameFile(info, f.part.same):
		if err := w.rest(f, latest); err != nil {
			return true, err
		}
		w.restart(f, info)
	case info.Size() < f.part.at:
		if f.end > f.at {
			w.trouble(f.path, f.number+1, ErrUnfinish)
		}
		w.restart(f, info)
	}
	f.missing = time.Time{}
	return true, w.lines(f, info, latest)
}

// open reads what is new in a file that is held open.
func (w *follower) open(f *input, latest *int64) error {
	if f.part.file == nil {
		return nil
	}
	info, err := f.part.file.Stat()
	if err != nil {
		w.trouble(f.path, f.number, err)
		return nil
	}
	return w.lines(f, info, latest)
}

// rest reads a file that has lost its name to its end, the last line too when it has no newline.
func (w *follower) rest(f *input, latest *int64) error {
	f.follow = false
	defer func() { f.follow = true }()
	w.left = append(w.left, leftFile{f.part.same, f.part.at})
	if f.part.file != nil {
		return w.open(f, latest)
	}
	list, err := os.ReadDir(filepath.Dir(f.path))
	for _, e := range list {
		path := filepath.Join(filepath.Dir(f.path), e.Name())
		if info, err := os.Lstat(path); err == nil && os.SameFile(info, f.part.same) {
			f.part.path = path
			return w.lines(f, info, latest)
		}
	}
	if err == nil {
		err = errOther
	}
	w.trouble(f.path, f.number+1, err)
	return nil
}

// restart begins with another file of the same path, or with the same one that was cut.
func (w *follower) restart(f *input, info os.FileInfo) {
	f.part.close()
	w.left = w.left[max(0, len(w.left)-maxLeft):]
	w.place++
	*f = input{path: f.path, base: f.base, n: w.place, finder: f.finder, follow: true}
	f.part = &part{path: f.path, same: info, spool: &w.spool}
	f.from = f.part
	w.hold(f)
}

const maxLeft = 1000 // files that are remembered

// hold opens a file, while there are few.
func (w *follower) hold(f *input) {
	if len(w.files) > maxHeld {
		return
	}
	file, err := os.Open(f.path)
	if err != nil {
		return // each read will tell
	}
	if info, err := file.Stat(); err != nil || !os.SameFile(info, f.part.same) {
		file.Close()
		return
	}
	f.part.file = file
}

// lines takes the new lines of a file.
func (w *follower) lines(f *input, info os.FileInfo, latest *int64) error {
	f.part.size, f.latest, f.ended = info.Size(), info.ModTime(), nil
	for w.take(f) {
		if err := w.held.push(f.time, f.n, f.number, f.line); err != nil {
			return err
		}
		*latest = max(*latest, f.time)
		for w.held.bytes > w.Memory/4 {
			if err := w.held.release(w.writeHeld); err != nil {
				return err
			}
		}
	}
	return nil
}

// find looks for files that are new.
func (w *follower) find() {
	for _, path := range w.Follow() {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if before := w.known[path]; before != nil && os.SameFile(before, info) {
			continue
		}
		if slices.ContainsFunc(w.files, func(f *input) bool { return f.path == path }) {
			continue
		}
		w.known[path] = info
		if !w.was(info) {
			w.add(path, info)
		}
	}
}

// was says that a file has been read, under another name.
func (w *follower) was(info os.FileInfo) bool {
	for _, f := range w.files {
		if os.SameFile(f.part.same, info) {
			return true
		}
	}
	for _, l := range w.left {
		if os.SameFile(l.same, info) && info.Size() >= l.at { // else its number was given to a new file
			return true
		}
	}
	return false
}

// add begins with a new file, unless it is compressed: that holds what was read before.
func (w *follower) add(path string, info os.FileInfo) {
	file, err := os.Open(path)
	if err != nil {
		w.trouble(path, 0, err)
		return
	}
	packed := packingOf(file) != nil
	file.Close()
	if packed {
		return
	}
	w.place++
	f := &input{path: path, base: w.base, n: w.place, follow: true}
	f.part = &part{path: path, same: info, spool: &w.spool}
	f.from = f.part
	f.finder = finder{w.TimeKey, w.Zone, info.ModTime()}
	w.files = append(w.files, f)
	w.hold(f)
}

// tooMany says that there are more files than can be followed.
func (m *merge) tooMany() error {
	return fmt.Errorf("%d files are too many to follow with so little memory: %d at most", len(m.files), m.most)
}
