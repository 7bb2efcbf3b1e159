// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
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
// A path whose file is another one than before was rotated: the new one is read from its start, and
// the old one to its end for a while, by the open file or under its new name in the same folder,
// since its writer sees that later. A file that became shorter was cut, and is read from its start.
type follower struct {
	*merge
	files []*input
	known map[string]os.FileInfo // what was found at paths
	left  []leftFile
	looks []look
	place int // of the next new file
	found time.Time
}

// A leftFile was read, and may have another name now.
type leftFile struct {
	same os.FileInfo
	at   int64  // how far
	tail []byte // what stands before that: a new file may get the number of a deleted one
}

// A look is when lines were read, and the latest time of those.
type look struct {
	at     time.Time
	latest int64
}

// follow goes on until ctx ends.
func (m *merge) follow(ctx context.Context, place int) error {
	w := &follower{merge: m, known: map[string]os.FileInfo{}, place: place, found: time.Now()}
	defer func() {
		for _, f := range w.files {
			f.close()
		}
	}()
	for _, f := range m.files {
		if f.part.same != nil {
			w.known[f.path] = f.part.same
		}
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
		if err := m.flush(); err != nil {
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
	latest := int64(math.MinInt64)
	for i := 0; i < len(w.files); i++ { // new ones come meanwhile
		if err := w.read(w.files[i], now, &latest); err != nil {
			return err
		}
	}
	w.files = slices.DeleteFunc(w.files, func(f *input) bool {
		if !f.follow {
			f.close()
		}
		return !f.follow
	})
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

// read reads what is new in a file.
func (w *follower) read(f *input, now time.Time, latest *int64) error {
	info := regular(f.path)
	if info == nil || !os.SameFile(info, f.part.same) {
		if info != nil {
			w.seen(f.path, info)
		}
		return w.old(f, now, latest)
	}
	f.missing, f.part.path = time.Time{}, f.path
	if info.Size() >= f.part.at {
		return w.lines(f, info, latest)
	}
	if f.end > f.at {
		w.warn(f.path, f.number+1, ErrUnfinish)
	}
	w.begin(f.path, f.part.file, info)
	f.part.file, f.follow = nil, false
	return nil
}

// regular is what a path leads to; nil: no regular file.
func regular(path string) os.FileInfo {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info
	}
	return nil
}

// old reads what is new in a file that has lost its path. After missEvery that is its end, the last
// line too when it has no newline.
func (w *follower) old(f *input, now time.Time, latest *int64) error {
	if f.missing.IsZero() {
		f.missing = now
	}
	info, err := f.moved()
	if err != nil {
		w.warn(f.path, f.number+1, err)
		f.follow = false
		return nil
	}
	if f.follow = now.Sub(f.missing) < missEvery; !f.follow {
		w.remember(f)
	}
	err = w.lines(f, info, latest)
	f.follow = f.follow || w.ended != nil // there is one more look
	return err
}

// moved finds a file that has lost its path.
func (f *input) moved() (os.FileInfo, error) {
	if f.part.file != nil {
		return f.part.file.Stat()
	}
	if info, err := os.Lstat(f.part.path); err == nil && os.SameFile(info, f.part.same) {
		return info, nil
	}
	dir := filepath.Dir(f.path)
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Lstat(path); err == nil && os.SameFile(info, f.part.same) {
			f.part.path = path
			return info, nil
		}
	}
	return nil, errGone
}

// remember sees to it that a file is not taken for a new one under another name.
func (w *follower) remember(f *input) {
	l := leftFile{f.part.same, f.part.at, make([]byte, min(tailSize, f.part.at))}
	if _, err := f.part.ReadAt(l.tail, l.at-int64(len(l.tail))); err == nil && l.at > 0 {
		w.left = append(w.left[max(0, len(w.left)-maxLeft):], l)
	}
}

const (
	maxLeft  = 1000 // files that are remembered
	tailSize = 64
)

// lines takes the new lines of a file. One that turns out to be compressed is none to follow: it
// holds what was read before.
func (w *follower) lines(f *input, info os.FileInfo, latest *int64) error {
	if f.part.at == 0 && info.Size() > 0 && packingOf(f.part) != nil {
		f.follow = false
		return nil
	}
	f.part.size, f.latest, f.ended = info.Size(), info.ModTime(), nil
	for w.take(f) {
		if err := w.held.push(f.time, f.n, f.number, f.line); err != nil {
			return err
		}
		*latest = max(*latest, f.time)
		if err := w.bound(); err != nil {
			return err
		}
	}
	return nil
}

// find looks for files that are new.
func (w *follower) find() {
	before := w.known
	w.known = make(map[string]os.FileInfo, len(before))
	for _, path := range w.Follow() {
		if info := regular(path); info != nil {
			if known := before[path]; known != nil {
				w.known[path] = known
			}
			w.seen(path, info)
		}
	}
}

// seen begins with the file of a path, unless it was seen there or read under another name. An
// empty one has nothing yet, nor shows that it is compressed.
func (w *follower) seen(path string, info os.FileInfo) {
	if before := w.known[path]; info.Size() == 0 || before != nil && os.SameFile(before, info) {
		return
	}
	w.known[path] = info
	if w.was(info, path) {
		return
	}
	file, _, err := openRegular(path, info)
	if err != nil {
		w.warn(path, 0, err)
		return
	}
	if len(w.files) > maxHeld {
		file.Close()
		file = nil
	}
	w.begin(path, file, info)
}

// was says that a file has been read, under another name.
func (w *follower) was(info os.FileInfo, path string) bool {
	for _, f := range w.files {
		if os.SameFile(f.part.same, info) {
			return true
		}
	}
	return slices.ContainsFunc(w.left, func(l leftFile) bool {
		if !os.SameFile(l.same, info) || info.Size() < l.at {
			return false
		}
		tail := make([]byte, len(l.tail))
		_, err := (&part{path: path, same: info}).ReadAt(tail, l.at-int64(len(tail)))
		return err == nil && bytes.Equal(tail, l.tail)
	})
}

// begin begins at the start of a file.
func (w *follower) begin(path string, file *os.File, info os.FileInfo) {
	w.place++
	f := w.input(w.place, path, file, info)
	f.follow = true
	w.files = append(w.files, f)
}

// tooMany says that there are more files than can be followed.
func (m *merge) tooMany() error {
	return fmt.Errorf("%d files are too many to follow with so little memory: %d at most", len(m.files), m.maxFiles)
}
