// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

// orphan makes a ring with ten records, as a process leaves it that was killed.
func orphan(t *testing.T, dir string) (path string) {
	t.Helper()
	r, err := Open(&Options{Dir: dir, Name: "own", Size: 256 << 10, Identity: []byte("who")})
	if err != nil {
		t.Fatal(err)
	}
	var h Hint
	for n := range uint32(10) {
		if _, err := r.Append(&h, Now, payload(nil, 0, n, 50)); err != nil {
			t.Fatal(err)
		}
	}
	path = r.Path()
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	return path
}

// give gives all of a tree to a user.
func give(t *testing.T, path string, uid int) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, uid, uid))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func wantNothing(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func openDir(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestDir takes a ring over, and removes it.
func TestDir(t *testing.T) {
	dir := sharedDir(t)
	path := orphan(t, dir)
	d := openDir(t, dir)
	names, err := d.Names(0)
	if err != nil || len(names) != 1 || names[0] != filepath.Base(path) || NameOf(names[0]) != "own" ||
		!d.Has(names[0]) {
		t.Fatalf("%q, %v", names, err)
	}
	if o, live, err := d.Look(names[0], nil); err != nil || live || string(o.Identity) != "who" || o.Path != path {
		t.Fatalf("%+v, %t, %v", o, live, err)
	}
	d.MaxSize = 1 << 10
	if r, err := d.Adopt(names[0], nil, nil); r != nil || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("%v", err)
	}
	d.MaxSize = 1 << 20
	r, err := d.Adopt(names[0], nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, live, err := d.Look(names[0], nil); err != nil || !live {
		t.Errorf("%t, %v", live, err)
	}
	refuse := func(o Owner) bool { return string(o.Identity) != "who" }
	if o, live, err := d.Look(names[0], refuse); err != nil || live || string(o.Identity) != "who" { // not asked for
		t.Errorf("%+v, %t, %v", o, live, err)
	}
	if _, err := d.Adopt(names[0], nil, nil); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if n := countAll(t, r); n != 10 {
		t.Errorf("%d records", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wantNothing(t, dir)
}

// TestDirMovedAway: somebody puts a link to another folder in the place of that of the rings, while
// a ring is taken over. Nothing there is removed.
func TestDirMovedAway(t *testing.T) {
	dir, other := sharedDir(t), sharedDir(t)
	path := orphan(t, dir)
	d := openDir(t, dir)
	r, err := d.Adopt(filepath.Base(path), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	bait := filepath.Join(other, filepath.Base(path))
	if err := os.MkdirAll(bait, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ringFile, ownerFile} {
		if err := os.WriteFile(filepath.Join(bait, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	moved := dir + ".moved"
	if err := errors.Join(os.Rename(dir, moved), os.Symlink(other, dir)); err != nil {
		t.Fatal(err)
	}
	before := listing(t, other)
	t.Cleanup(func() { os.RemoveAll(moved) })
	if n := countAll(t, r); n != 10 {
		t.Errorf("%d records", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if after := listing(t, other); after != before {
		t.Errorf("elsewhere: %s, before %s", after, before)
	}
	wantNothing(t, moved)
	if _, err := OpenDir(dir); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a link: %v", err)
	}
}

// TestDirHostile: what is put in the place of a ring is left alone, and nobody waits.
func TestDirHostile(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		do   func(path string) error
		root bool
	}{
		{"the folder is a link", func(p string) error {
			return errors.Join(os.Rename(p, p+".x"), os.Symlink(p+".x", p))
		}, false},
		{"the folder is a pipe", func(p string) error {
			return errors.Join(os.RemoveAll(p), unix.Mkfifo(p, 0o600))
		}, false},
		{"the folder is open to others", func(p string) error { return os.Chmod(p, 0o755) }, false},
		{"the owner file is a link", func(p string) error {
			return errors.Join(os.Rename(p+"/owner", p+"/x"), os.Symlink("x", p+"/owner"))
		}, false},
		{"the ring is a link", func(p string) error {
			return errors.Join(os.Rename(p+"/ring", p+"/x"), os.Symlink("x", p+"/ring"))
		}, false},
		{"the ring is a link elsewhere", func(p string) error {
			return errors.Join(os.Remove(p+"/ring"), os.Symlink(outside, p+"/ring"))
		}, false},
		{"the owner file is a pipe", func(p string) error {
			return errors.Join(os.Remove(p+"/owner"), unix.Mkfifo(p+"/owner", 0o600))
		}, false},
		{"the ring is a pipe", func(p string) error {
			return errors.Join(os.Remove(p+"/ring"), unix.Mkfifo(p+"/ring", 0o600))
		}, false},
		{"the ring is a folder", func(p string) error {
			return errors.Join(os.Remove(p+"/ring"), os.Mkdir(p+"/ring", 0o700))
		}, false},
		{"the ring is empty", func(p string) error { return os.Truncate(p+"/ring", 0) }, false},
		{"the ring is missing", func(p string) error { return os.Remove(p + "/ring") }, false},
		{
			"the head is garbage", func(p string) error { return os.WriteFile(p+"/ring", make([]byte, 1<<20), 0o600) },
			false,
		},
		{"the owner file is garbage", func(p string) error {
			return os.WriteFile(p+"/owner",
				[]byte("spillway ring 1\nx"), 0o600)
		}, false},
		{"the owner file is another user's", func(p string) error { return os.Chown(p+"/owner", 12346, 12346) }, true},
		{"the ring is another user's", func(p string) error { return os.Chown(p+"/ring", 12346, 12346) }, true},
		{"the folder is another user's", func(p string) error { return os.Chown(p, 12346, 12346) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := sharedDir(t)
			path := orphan(t, dir)
			if tt.root {
				needs.Have(t, os.Geteuid() == 0, "only root gives files to others")
				give(t, dir, 12345)
			}
			if err := tt.do(path); err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			r, err := openDir(t, dir).Adopt(filepath.Base(path), nil, nil)
			if err == nil || r != nil || errors.Is(err, ErrLocked) {
				t.Errorf("taken over: %v", err)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("changed:\n%s, before\n%s", after, before)
			}
			if text, err := os.ReadFile(outside); string(text) != "text" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// TestDirOfAnother: root takes over what another user left; other users do not.
func TestDirOfAnother(t *testing.T) {
	needs.Have(t, os.Geteuid() == 0, "only root gives files to others")
	dir := sharedDir(t)
	path := orphan(t, dir)
	give(t, dir, 12345)
	if _, err := Adopt(dir, "own", nil, nil); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a logger of root's: %v", err)
	}
	d := openDir(t, dir)
	if d.UID() != 12345 {
		t.Errorf("owner %d", d.UID())
	}
	r, err := d.Adopt(filepath.Base(path), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := countAll(t, r); n != 10 {
		t.Errorf("%d records", n)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wantNothing(t, dir)
}

// TestDirDescriptors: rings that were adopted together have one descriptor of their folder, which
// is closed with the last of them.
func TestDirDescriptors(t *testing.T) {
	dir := sharedDir(t)
	for range 3 {
		orphan(t, dir)
	}
	open := func() (n int) {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && to == dir {
				n++
			}
		}
		return n
	}
	rings, err := Adopt(dir, "own", nil, nil)
	if err != nil || len(rings) != 3 {
		t.Fatalf("%d rings, %v", len(rings), err)
	}
	for left := range rings {
		if n := open(); n != 1 {
			t.Errorf("%d descriptors while %d rings are there", n, len(rings)-left)
		}
		if err := rings[left].Close(); err != nil {
			t.Error(err)
		}
	}
	if n := open(); n != 0 {
		t.Errorf("%d descriptors are left", n)
	}
	wantNothing(t, dir)
}

// claimAll makes each eight bytes claim to be a record that reaches to the end.
func claimAll(mem []byte) {
	for at := 64; at+recordHeader < len(mem); at += 8 {
		binary.LittleEndian.PutUint32(mem[at:], uint32(len(mem)-at-recordHeader))
		binary.LittleEndian.PutUint32(mem[at+4:], 7)
	}
}

// TestVainFault: neither does it take long where the checks meet a fault: the file is too short.
func TestVainFault(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "ring"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 4 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	claimAll(mem)
	if err := f.Truncate(size - 64<<10); err != nil {
		t.Fatal(err)
	}
	n := &notes{memory: &memory{mem: mem, shared: true}}
	s := &segmentReader{segmentFacts: segmentFacts{nonce: 7, last: 1}, end: size, pos: 64}
	if s.next(n) || s.loss.Regions != 1 {
		t.Errorf("a record was found, or no loss: %+v", s.loss)
	}
	if s.vain > (maxVain+1)*size || s.vain < maxVain*size {
		t.Errorf("%d bytes were checked", s.vain)
	}
}

// TestVain: a segment of which each eight bytes claim to be a long record is given up soon. To
// check them all would be 64 GB for this one.
func TestVain(t *testing.T) {
	s := &segmentReader{segmentFacts: segmentFacts{nonce: 7}, end: 1 << 20, pos: 64}
	mem := make([]byte, 1<<20)
	claimAll(mem)
	torn := false
	if s.find(mem, &torn) || !torn {
		t.Error("a record was found")
	}
	if s.vain > (maxVain+1)<<20 || s.vain < maxVain<<20 {
		t.Errorf("%d bytes were checked", s.vain)
	}
}
