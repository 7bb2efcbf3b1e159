// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// An index holds the files that are remembered, and finds the one that a line goes to.
type index struct {
	pattern *pattern
	writers []identity // in the order of their time; files of the earlier ones are only looked into
	paths   []*pattern // of each writer
	self    int        // index of this process among them
	crowd   crowd

	files   map[string]*file   // by path
	order   []*file            // the same, in the order in which they came
	routes  map[route]*file    // where the next line of a route goes
	last    *file              // of the last line, and its route
	retired map[string][]*file // that lines are expected in, by the path they had, the oldest first
}

// newIndex makes an index for a process, with the writers that a state names.
func newIndex(p *pattern, me identity, writers []identity) index {
	paths := make([]*pattern, len(writers), len(writers)+1)
	for i := range writers {
		w := &writers[i]
		if w.pattern == "" {
			w.pattern = p.text
		}
		paths[i] = p
		if w.pattern != p.text { // what was written under another path is looked for there
			// One file of the old path then stands for one of the new path; else lines could not be
			// told apart.
			if old, err := parsePattern(w.pattern); err == nil && old.routes() == p.routes() {
				old.reserve = p.reserve
				paths[i] = old
			}
		}
	}
	// This process is the last, although its path may have been one of an earlier process, before
	// another path was: what that one wrote comes again first.
	self := len(writers) - 1
	if self < 0 || writers[self] != me {
		self = len(writers)
		writers, paths = append(writers, me), append(paths, p)
	}
	return index{
		pattern: p, writers: writers, paths: paths, self: self,
		files: map[string]*file{}, routes: map[route]*file{}, retired: map[string][]*file{},
	}
}

// recall looks whether the file of an entry may hold lines that come again, and remembers it; nil
// if it need not.
func (x *index) recall(e entry) *file {
	id, size, err := idAt(e.path)
	if err == nil && id.inode != e.inode || errors.Is(err, fs.ErrNotExist) {
		return x.recallRetired(e) // or it was moved away or replaced: as if it had never been named
	}
	if err == nil && e.isCut(e.path, size) {
		if copied, ok := x.recallCut(e, e.path, size); ok {
			return copied
		}
		if size < e.length {
			return nil // cut: likewise
		}
	}
	f := &file{
		path: e.path, writer: e.writer, known: true, inode: e.inode, length: e.length, doubt: e.doubt, tail: e.tail,
		expected: err != nil || size > e.length, found: e.length, limit: math.MaxInt64,
	}
	if err == nil { // else its size is not known
		f.limit, f.whole = e.limited(e.path, size)
	}
	if !f.expected && f.writer != x.self {
		return nil
	}
	x.add(f)
	return f
}

// recallRetired looks for the file of an entry under another name.
func (x *index) recallRetired(e entry) *file {
	path, size := movedAs(e.path, e.inode)
	if path == "" || x.files[path] != nil {
		return nil
	}
	if e.isCut(path, size) {
		if copied, ok := x.recallCut(e, path, size); ok {
			return copied
		}
	}
	if size <= e.length {
		return nil
	}
	limit, whole := e.limited(path, size)
	return x.addRetired(&file{
		path: path, of: e.path, writer: e.writer, known: true, inode: e.inode, length: e.length, doubt: e.doubt,
		tail:     e.tail,
		expected: true, found: e.length, limit: limit, whole: whole,
	})
}

// addRetired has lines looked for in a file that is not at its path any more, in turn with others.
func (x *index) addRetired(f *file) *file {
	x.add(f)
	x.queue(f)
	return f
}

// queue puts a retired file among those of its path.
func (x *index) queue(f *file) {
	i := slices.IndexFunc(x.retired[f.of], func(g *file) bool { return isOlder(f.of, f.path, g.path) })
	if i < 0 {
		i = len(x.retired[f.of])
	}
	x.retired[f.of] = slices.Insert(x.retired[f.of], i, f)
}

// retire has lines looked for in f at another path.
func (x *index) retire(f *file, to string) {
	delete(x.files, f.path)
	x.files[to] = f
	before := f.of
	f.of, f.path = cmp.Or(f.of, f.path), to
	if before == "" {
		x.queue(f)
	}
}

// add makes f one of the files that are remembered.
func (x *index) add(f *file) {
	x.files[f.path] = f
	x.order = append(x.order, f)
}

// forget is the opposite of add, but for order.
func (x *index) forget(f *file) {
	delete(x.files, f.path)
	if x.routes[f.route] == f {
		delete(x.routes, f.route)
	}
	if f.of == "" {
		return
	}
	if rest := slices.DeleteFunc(x.retired[f.of], func(g *file) bool { return g == f }); len(rest) > 0 {
		x.retired[f.of] = rest
	} else {
		delete(x.retired, f.of)
	}
}

// foreign reports whether lines are only looked for in f: the file of an earlier process, or a
// retired one.
func (x *index) foreign(f *file) bool { return f.writer != x.self || f.of != "" }

// passedOn reports whether lines are looked for in f under a path that was that of this output
// before, and may be that of another now.
func (x *index) passedOn(f *file) bool {
	return f.expected && x.writers[f.writer].pattern != x.pattern.text
}

// expectedIn returns the oldest retired file of a path that lines are expected in.
func (x *index) expectedIn(path string, writer int) *file {
	for _, f := range x.retired[path] {
		if f.expected && f.writer == writer {
			return f
		}
	}
	return nil
}

// lookUp returns the file that lines of a route go to: that of the earliest writer that may have
// them, ours, or, while no new files are made, that for the rest.
func (x *index) lookUp(r route) *file {
	f := x.routes[r]
	if f == nil {
		var path string
		if f, path = x.fileOf(r); f == nil && x.crowd.closed {
			if rest, ok := x.pattern.rest(); ok && rest != r && x.crowd.isNew(path) {
				return x.lookUp(rest)
			}
		}
		if f == nil {
			f = &file{path: path, writer: x.self}
			x.add(f)
		}
		r.tag = strings.Clone(r.tag)
		f.route = r
		x.routes[r] = f
	}
	return f
}

// fileOf looks for the file of a route among those that are remembered. It returns the path of a
// new one if there is none.
func (x *index) fileOf(r route) (_ *file, path string) {
	for i, w := range x.writers {
		if i == x.self {
			continue
		}
		path := x.paths[i].path(r, w)
		if f := x.expectedIn(path, i); f != nil {
			return f, path
		}
		if f := x.files[path]; f != nil && f.expected && f.writer == i {
			return f, path
		}
	}
	path = x.pattern.path(r, x.writers[x.self])
	if f := x.expectedIn(path, x.self); f != nil {
		return f, path
	}
	f := x.files[path]
	if f != nil && f.of == "" {
		f.writer = x.self // under another pattern it may have been the file of somebody else
	}
	return f, path
}

// leave has the next line of f's route look for its file anew.
func (x *index) leave(f *file) {
	delete(x.routes, f.route)
	x.last = nil
}

// state makes a state of the files that are known, of which length says how long they are and
// whether they are in it.
func (x *index) state(closed bool, point Point, length func(*file) (n int64, ok bool)) []byte {
	entries := make([]entry, 0, len(x.order))
	named := make([]bool, len(x.writers))
	for _, f := range x.order {
		if !f.known {
			continue
		}
		n, ok := length(f)
		if !ok {
			continue
		}
		named[f.writer] = true
		e := entry{writer: f.writer, path: cmp.Or(f.of, f.path), inode: f.inode, length: n, doubt: f.doubt}
		e.tail = f.tailAt(n)
		if x.foreign(f) && f.whole {
			e.limit = f.limit
		}
		entries = append(entries, e)
	}
	writers := make([]identity, 0, 1)
	at := make([]int, len(x.writers)) // in writers
	for i, w := range x.writers {
		if named[i] {
			at[i] = len(writers)
			writers = append(writers, w)
		}
	}
	for i := range entries {
		entries[i].writer = at[entries[i].writer]
	}
	return appendState(nil, &state{writers, entries, closed, point})
}

// admit counts the new file that an event would make, and returns ErrCrowded where a Checkpoint has
// to come first.
func (x *index) admit(r route) error {
	if x.crowd.limit == 0 || x.crowd.closed {
		return nil
	}
	f, path := x.fileOf(r)
	if f != nil || !x.crowd.isNew(path) {
		return nil
	}
	if rest, ok := x.pattern.rest(); !ok || rest == r {
		return nil
	}
	if x.crowd.checkpoints && x.crowd.isFull(time.Now()) {
		return ErrCrowded
	}
	x.crowd.count()
	return nil
}

// crowded tells that no new files are made for a while.
func (x *index) crowded() error {
	rest, _ := x.pattern.rest()
	path := x.pattern.path(rest, x.writers[x.self])
	return codes.FileCrowd.Errorf("files: %s: %d new files within a minute; until it is over, lines of further tags and times go to %s",
		x.pattern.text, x.crowd.made, path)
}
