// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stampLayout is the time in the name of a rotated file, behind a minus.
const stampLayout = "20060102T150405.000"

// The forms in which a rotated file may be there.
const (
	plainForm = iota
	gzipForm
	zstdForm
	unfinishedForm // part of a compression of any kind
	formCount
)

// unfinishedEnd is the same for all kinds of compression: were one longer, long tags would be cut
// at another place, and so get other files than they have.
const unfinishedEnd = ".gz.tmp"

// endings of the forms.
var endings = [formCount]string{"", ".gz", ".zst", unfinishedEnd}

// rotatedRoom is how much longer a rotated file's name may be.
const rotatedRoom = len("-") + len(stampLayout) + len(unfinishedEnd)

// splitName parts the name of a file before the ending: app and .jsonl.
func splitName(path string) (dir, base, ending string) {
	dir, name := filepath.Split(path)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return dir, name[:i], name[i:]
	}
	return dir, name, ""
}

// rotatedName returns what the file at path is called when it was rotated at t.
func rotatedName(path string, t time.Time) string {
	dir, base, ending := splitName(path)
	return dir + base + "-" + t.UTC().Format(stampLayout) + ending
}

// freeName returns the first such name from t on that nothing has and that sorts behind all that
// there are, though many be rotated in one millisecond or the clock be set back. The caller holds
// the directory's lock.
func freeName(path string, t time.Time) (string, error) {
	all, err := rotatedOf(path)
	if err != nil {
		return "", err
	}
	if len(all) > 0 && !t.Truncate(time.Millisecond).After(all[0].at) {
		t = all[0].at.Add(time.Millisecond)
	}
	return freeFrom(path, t)
}

// freeFrom returns the first such name from t on that nothing has. The caller holds the directory's
// lock.
func freeFrom(path string, t time.Time) (string, error) {
	for {
		name := rotatedName(path, t)
		taken := false
		for _, ending := range endings[:unfinishedForm] {
			_, err := os.Lstat(name + ending)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			taken = taken || err == nil
		}
		if !taken {
			return name, nil
		}
		t = t.Add(time.Millisecond)
	}
}

// A rotated file is one in the directory of a path that carries its name and a stamp.
type rotated struct {
	path  string // of the plain form
	at    time.Time
	forms [formCount]bool // which are there
}

// whole reports whether the file is there, in any form.
func (r *rotated) whole() bool { return slices.Contains(r.forms[:unfinishedForm], true) }

// rotatedOf returns the rotated files of a path, the youngest first. What is not a regular file
// does not count.
func rotatedOf(path string) ([]rotated, error) {
	dir, base, ending := splitName(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []rotated
	index := map[string]int{}
	for _, e := range entries {
		at, form, ok := parseRotated(e.Name(), base, ending)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		name := dir + strings.TrimSuffix(e.Name(), endings[form])
		i, ok := index[name]
		if !ok {
			i = len(all)
			index[name] = i
			all = append(all, rotated{path: name, at: at})
		}
		all[i].forms[form] = true
	}
	slices.SortFunc(all, func(a, b rotated) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.path, a.path)) })
	return all, nil
}

// movedAs returns what the file with an inode is called that was at a path, and its size: another
// name in the same directory that begins as the path does, as rotated files have it, Spillway's own
// and those of other programs. "" if there is none.
func movedAs(path string, inode uint64) (name string, size int64) {
	_, base, _ := splitName(path)
	return renamedAs(path, inode, base)
}

// appendableAs is movedAs for a file that is to be appended to, and whose inode may be another's by
// now: its name begins with all of the old one, and is none of a compressed file or a latch.
func appendableAs(path string, inode uint64) (name string, size int64) {
	name, size = renamedAs(path, inode, filepath.Base(path))
	for _, ending := range []string{endings[gzipForm], endings[zstdForm], ".tmp", latchEnding} {
		if strings.HasSuffix(name, ending) {
			return "", 0
		}
	}
	return name, size
}

func renamedAs(path string, inode uint64, begins string) (name string, size int64) {
	if name, size = rotatedAs(path, inode); name != "" {
		return name, size
	}
	dir, _ := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", 0
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), begins) || dir+e.Name() == path {
			continue
		}
		if id, size, err := idAt(dir + e.Name()); err == nil && id.inode == inode {
			return dir + e.Name(), size
		}
	}
	return "", 0
}

// isOlder reports whether a rotated file of a path was begun before another. Spillway's names sort
// by time; of others' the time of the last change has to do.
func isOlder(path, a, b string) bool {
	_, base, ending := splitName(path)
	_, _, ours := parseRotated(filepath.Base(a), base, ending)
	_, _, too := parseRotated(filepath.Base(b), base, ending)
	if ours && too {
		return a < b
	}
	x, errX := os.Lstat(a)
	y, errY := os.Lstat(b)
	return errX == nil && errY == nil && x.ModTime().Before(y.ModTime())
}

// parseRotated reads the name of a rotated file.
func parseRotated(name, base, ending string) (at time.Time, form int, ok bool) {
	stamp, ok := strings.CutPrefix(name, base+"-")
	if !ok || len(stamp) < len(stampLayout) {
		return at, 0, false
	}
	rest, ok := strings.CutPrefix(stamp[len(stampLayout):], ending)
	form = slices.Index(endings[:], rest)
	if !ok || form < 0 {
		return at, 0, false
	}
	stamp = stamp[:len(stampLayout)]
	at, err := time.Parse(stampLayout, stamp)
	return at, form, err == nil && at.Format(stampLayout) == stamp
}

// rotatedAs returns which rotated file of a path has an inode, and its size; "" if none has.
func rotatedAs(path string, inode uint64) (name string, size int64) {
	all, err := rotatedOf(path)
	if err != nil {
		return "", 0
	}
	for i := range all {
		if !all[i].forms[plainForm] {
			continue
		}
		if id, size, err := idAt(all[i].path); err == nil && id.inode == inode {
			return all[i].path, size
		}
	}
	return "", 0
}

// removeForms deletes names, never what a link leads to.
func (r *rotated) removeForms() error {
	var errs []error
	for form, there := range r.forms {
		if !there {
			continue
		}
		if err := os.Remove(r.path + endings[form]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
