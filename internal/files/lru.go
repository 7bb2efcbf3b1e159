// SPDX-License-Identifier: Apache-2.0

package files

// lru holds the open files in the order in which they were last used.
type lru struct {
	newest, oldest *file
	n              int
}

func (l *lru) push(f *file) {
	f.older, f.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = f
	} else {
		l.oldest = f
	}
	l.newest = f
	l.n++
}

func (l *lru) pushOldest(f *file) {
	f.newer, f.older = l.oldest, nil
	if l.oldest != nil {
		l.oldest.older = f
	} else {
		l.newest = f
	}
	l.oldest = f
	l.n++
}

func (l *lru) remove(f *file) {
	if f.newer != nil {
		f.newer.older = f.older
	} else {
		l.newest = f.older
	}
	if f.older != nil {
		f.older.newer = f.newer
	} else {
		l.oldest = f.newer
	}
	f.newer, f.older = nil, nil
	l.n--
}

func (l *lru) touch(f *file) {
	if l.newest != f {
		l.remove(f)
		l.push(f)
	}
}
