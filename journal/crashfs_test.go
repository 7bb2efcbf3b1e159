// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// crashFS is a file system in memory whose power can be cut. It keeps for each file what is on the
// disk and what is only in the page cache, and for each directory which names are durable. After a
// cut every page that was not synced is the old one, the new one, or garbage; every change of a
// name that was not synced happened or did not.
type crashFS struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	dirs    map[string]*crashDir
	fresh   map[string]bool // directories whose names are not durable
	locked  map[string]bool
	dead    bool  // power is off: everything fails
	cutIn   int   // power goes off at this many calls from now; 0 never
	kills   bool  // it is not the power but the process that ends
	limit   int64 // bytes of all files; 0 is no limit
	used    int64
	failing func(op, path string) error // injected errors
	calls   int
	after   *crashFS // what the disk holds after the cut
}

type crashDir struct {
	now     map[string]*crashInode
	durable map[string]*crashInode
	changes []crashChange
}

type crashChange struct {
	op       byte // create, remove, rename
	from, to string
	inode    *crashInode
}

type crashInode struct {
	cache, disk []byte       // page cache and disk; lengths are the file's lengths
	dirty       map[int]bool // pages that differ in what matters: written since the last sync
	lost        map[int]bool // pages that a failed sync marked clean
}

var errPower = errors.New("power is off")

func newCrashFS(r *rand.Rand) *crashFS {
	return &crashFS{rnd: r, dirs: map[string]*crashDir{}, fresh: map[string]bool{}, locked: map[string]bool{}}
}

// call counts a call and cuts the power when it is time. With mu held.
func (c *crashFS) call(op, path string) error {
	if c.dead {
		return errPower
	}
	c.calls++
	if c.cutIn > 0 {
		if c.cutIn--; c.cutIn == 0 {
			if c.kills {
				c.kill()
			} else {
				c.cut()
			}
			return errPower
		}
	}
	if c.failing != nil {
		return c.failing(op, path)
	}
	return nil
}

// cut makes up what is left on the disk. With mu held.
func (c *crashFS) cut() {
	c.dead = true
	r := c.rnd
	after := newCrashFS(rand.New(rand.NewPCG(r.Uint64(), 2)))
	after.limit = c.limit
	done := map[*crashInode]*crashInode{}
	inode := func(f *crashInode) *crashInode {
		if n := done[f]; n != nil {
			return n
		}
		n := f.cut(r)
		done[f] = n
		after.used += int64(len(n.cache))
		return n
	}
	for _, path := range slices.Sorted(maps.Keys(c.dirs)) {
		d := c.dirs[path]
		if c.fresh[path] && r.IntN(2) == 0 {
			continue // gone, with all that is in it
		}
		names := maps.Clone(d.durable)
		// Journaled directories keep a prefix of the changes, others any of them.
		prefix := -1
		if r.IntN(2) == 0 {
			prefix = r.IntN(len(d.changes) + 1)
		}
		for i, ch := range d.changes {
			if prefix >= 0 && i >= prefix || prefix < 0 && r.IntN(2) == 0 {
				continue
			}
			switch ch.op {
			case 'c':
				names[ch.to] = ch.inode
			case 'r':
				delete(names, ch.from)
			case 'm':
				if names[ch.from] == ch.inode {
					delete(names, ch.from)
					names[ch.to] = ch.inode
				}
			}
		}
		nd := &crashDir{now: map[string]*crashInode{}}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			nd.now[name] = inode(names[name])
		}
		nd.durable = maps.Clone(nd.now)
		after.dirs[path] = nd
	}
	c.after = after
}

// kill ends the process: the page cache stays, and so does what the disk lacks of it. With mu held.
func (c *crashFS) kill() {
	c.dead = true
	after := newCrashFS(rand.New(rand.NewPCG(c.rnd.Uint64(), 3)))
	after.limit, after.used, after.dirs, after.fresh = c.limit, c.used, c.dirs, c.fresh
	c.after = after
}

func (f *crashInode) cut(r *rand.Rand) *crashInode {
	n := &crashInode{dirty: map[int]bool{}, lost: map[int]bool{}}
	size := len(f.disk)
	if len(f.cache) != size && r.IntN(2) == 0 {
		size = len(f.cache)
	}
	n.disk = make([]byte, size)
	copy(n.disk, f.disk)
	fate := r.IntN(4) // of all pages alike, or of each its own
	for p := range (size + pageSize - 1) / pageSize {
		if !f.dirty[p] {
			continue
		}
		was := n.disk[p*pageSize : min((p+1)*pageSize, size)]
		is := slices.Clone(was)
		if p*pageSize < len(f.cache) {
			copy(is, f.cache[p*pageSize:])
		}
		what := fate
		if fate == 3 {
			what = r.IntN(4)
		}
		switch what {
		case 0: // lost
		case 1: // kept
			copy(was, is)
		case 2: // garbage
			for i := range was {
				was[i] = byte(r.Uint32())
			}
		case 3: // torn between sectors
			for i := 0; i < len(was); i += 512 {
				if r.IntN(2) == 0 {
					copy(was[i:min(i+512, len(was))], is[i:])
				}
			}
		}
	}
	n.cache = slices.Clone(n.disk)
	return n
}

func (c *crashFS) dir(path string) *crashDir { return c.dirs[filepath.Dir(path)] }

func (c *crashFS) MkdirAll(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("mkdir", dir); err != nil {
		return err
	}
	if c.dirs[dir] == nil {
		c.dirs[dir] = &crashDir{now: map[string]*crashInode{}, durable: map[string]*crashInode{}}
		c.fresh[dir] = true
	}
	return nil
}

type crashLock struct {
	c    *crashFS
	path string
}

func (l crashLock) Close() error {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	delete(l.c.locked, l.path)
	return nil
}

func (c *crashFS) Lock(path string) (io.Closer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("lock", path); err != nil {
		return nil, err
	}
	if c.locked[path] {
		return nil, ErrLocked
	}
	c.locked[path] = true
	return crashLock{c, path}, nil
}

func (c *crashFS) Create(path string) (File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("create", path); err != nil {
		return nil, err
	}
	d := c.dir(path)
	name := filepath.Base(path)
	if d == nil {
		return nil, fs.ErrNotExist
	}
	if d.now[name] != nil {
		return nil, fs.ErrExist
	}
	f := &crashInode{dirty: map[int]bool{}, lost: map[int]bool{}}
	d.now[name] = f
	d.changes = append(d.changes, crashChange{'c', "", name, f})
	return &crashFile{c, path, f, false}, nil
}

func (c *crashFS) Open(path string) (File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("open", path); err != nil {
		return nil, err
	}
	if d := c.dir(path); d != nil && d.now[filepath.Base(path)] != nil {
		return &crashFile{c, path, d.now[filepath.Base(path)], false}, nil
	}
	return nil, fs.ErrNotExist
}

func (c *crashFS) Rename(oldpath, newpath string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("rename", newpath); err != nil {
		return err
	}
	from, to := c.dir(oldpath), c.dir(newpath)
	f := from.now[filepath.Base(oldpath)]
	if f == nil || to == nil {
		return fs.ErrNotExist
	}
	delete(from.now, filepath.Base(oldpath))
	to.now[filepath.Base(newpath)] = f
	if from == to {
		from.changes = append(from.changes, crashChange{'m', filepath.Base(oldpath), filepath.Base(newpath), f})
	} else { // between directories: only the new name, only the old, or for a moment both; never neither
		to.changes = append(to.changes, crashChange{'c', "", filepath.Base(newpath), f})
		to.durable[filepath.Base(newpath)] = f
		delete(c.fresh, filepath.Dir(newpath)) // made before it
		from.changes = append(from.changes, crashChange{'r', filepath.Base(oldpath), "", f})
	}
	return nil
}

func (c *crashFS) Remove(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("remove", path); err != nil {
		return err
	}
	d := c.dir(path)
	f := d.now[filepath.Base(path)]
	if f == nil {
		return fs.ErrNotExist
	}
	c.used -= int64(len(f.cache))
	delete(d.now, filepath.Base(path))
	d.changes = append(d.changes, crashChange{'r', filepath.Base(path), "", f})
	return nil
}

func (c *crashFS) ReadDir(dir string) ([]DirEntry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("readdir", dir); err != nil {
		return nil, err
	}
	var r []DirEntry
	d := c.dirs[dir]
	if d == nil {
		return nil, fs.ErrNotExist
	}
	for _, name := range slices.Sorted(maps.Keys(d.now)) {
		r = append(r, DirEntry{Name: name, Regular: true})
	}
	return r, nil
}

func (c *crashFS) SyncDir(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call("syncdir", dir); err != nil {
		return err
	}
	if d := c.dirs[dir]; d != nil {
		d.durable, d.changes = maps.Clone(d.now), nil
	}
	for path := range c.fresh { // the names of directories in it
		if filepath.Dir(path) == dir {
			delete(c.fresh, path)
		}
	}
	return nil
}

// sizeOf is how long a file is. With mu held.
func (c *crashFS) sizeOf(dir, name string) int64 {
	if d := c.dirs[dir]; d != nil && d.now[name] != nil {
		return int64(len(d.now[name].cache))
	}
	return 0
}

// fill has others take what room there is.
func (c *crashFS) fill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = c.used
}

type crashFile struct {
	c      *crashFS
	path   string
	f      *crashInode
	closed bool
}

func (f *crashFile) call(op string) error {
	if f.closed {
		return fs.ErrClosed
	}
	return f.c.call(op, f.path)
}

func (f *crashFile) ReadAt(b []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.call("read"); err != nil {
		return 0, err
	}
	if off >= int64(len(f.f.cache)) {
		return 0, io.EOF
	}
	n := copy(b, f.f.cache[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *crashFile) WriteAt(b []byte, off int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	err := f.call("write")
	if f.closed {
		return 0, err
	}
	f.f.evict(f.c.rnd)
	n := len(b)
	if err != nil {
		if f.c.dead {
			return 0, err
		}
		n = f.c.rnd.IntN(n + 1) // a failed write may have written some
	}
	if e := f.resize(max(int64(len(f.f.cache)), off+int64(n))); e != nil {
		return 0, e
	}
	copy(f.f.cache[off:], b[:n])
	for p := off / pageSize; p*pageSize < off+int64(n); p++ {
		f.f.dirty[int(p)] = true
		delete(f.f.lost, int(p))
	}
	return n, err
}

// evict drops some of the pages that a failed sync marked clean from the cache: what is read there
// then is what the disk has. The kernel does that some time after the failure; here, at writes.
func (f *crashInode) evict(r *rand.Rand) {
	for p := range f.lost {
		if r.IntN(4) == 0 && (p+1)*pageSize <= min(len(f.disk), len(f.cache)) {
			copy(f.cache[p*pageSize:(p+1)*pageSize], f.disk[p*pageSize:])
			delete(f.lost, p)
		}
	}
}

// resize changes the length. With mu held.
func (f *crashFile) resize(size int64) error {
	more := size - int64(len(f.f.cache))
	if more > 0 && f.c.limit > 0 && f.c.used+more > f.c.limit {
		return syscall.ENOSPC
	}
	f.c.used += more
	if more <= 0 {
		f.f.cache = f.f.cache[:size:size]
	} else {
		f.f.cache = append(f.f.cache, make([]byte, more)...)
	}
	return nil
}

func (f *crashFile) Allocate(size int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.call("allocate"); err != nil {
		return err
	}
	if size <= int64(len(f.f.cache)) {
		return nil
	}
	return f.resize(size)
}

func (f *crashFile) Truncate(size int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.call("truncate"); err != nil {
		return err
	}
	return f.resize(size)
}

func (f *crashFile) Size() (int64, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	err := f.call("size")
	return int64(len(f.f.cache)), err
}

func (f *crashFile) Datasync() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	err := f.call("sync")
	if f.c.dead || f.closed {
		return err
	}
	i := f.f
	if len(i.disk) > len(i.cache) {
		i.disk = i.disk[:len(i.cache):len(i.cache)]
	}
	i.disk = append(i.disk, make([]byte, len(i.cache)-len(i.disk))...)
	for p := range i.dirty {
		if p*pageSize >= len(i.cache) {
			continue
		}
		if err != nil && f.c.rnd.IntN(2) == 0 {
			// As Linux does it: what could not be written is clean from now on, and the next sync
			// says nothing about it.
			i.lost[p] = true
			continue
		}
		copy(i.disk[p*pageSize:], i.cache[p*pageSize:min((p+1)*pageSize, len(i.cache))])
	}
	clear(i.dirty)
	return err
}

func (f *crashFile) Close() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.closed = true
	return nil
}

func TestCrashFS(t *testing.T) {
	// The model itself: what was synced is there, what was not is any of three.
	seen := map[string]bool{}
	for seed := range uint64(200) {
		c := newCrashFS(rand.New(rand.NewPCG(seed, 0)))
		c.MkdirAll("d")
		c.SyncDir(".")
		f, _ := c.Create("d/f")
		page := func(b byte) []byte { return slices.Repeat([]byte{b}, pageSize) }
		f.WriteAt(append(page('a'), page('a')...), 0)
		f.Datasync()
		c.SyncDir("d")
		f.WriteAt(page('b'), pageSize)
		c.Create("d/g")
		c.cut()
		f, err := c.after.Open("d/f")
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 2*pageSize)
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if string(b[:pageSize]) != string(page('a')) {
			t.Fatal("a synced page changed")
		}
		switch string(b[pageSize:]) {
		case string(page('a')):
			seen["lost"] = true
		case string(page('b')):
			seen["kept"] = true
		default:
			seen["garbled"] = true
		}
		_, err = c.after.Open("d/g")
		seen[fmt.Sprint("name ", err == nil)] = true
	}
	if len(seen) != 5 {
		t.Errorf("only these happened: %v", seen)
	}
}
