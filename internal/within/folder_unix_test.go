// SPDX-License-Identifier: Apache-2.0

//go:build unix

package within

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

func TestMain(m *testing.M) { os.Exit(needs.Main(m)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scene is a folder with everything in it, beside one in which nothing may be touched.
func scene(t *testing.T) (d *Folder, dir, outside string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir, outside = filepath.Join(top, "dir"), filepath.Join(top, "outside")
	for _, p := range []string{dir, outside, filepath.Join(dir, "sub"), filepath.Join(dir, "sub", "deep")} {
		must(t, os.Mkdir(p, 0o700))
	}
	for _, p := range []string{
		filepath.Join(dir, "file"), filepath.Join(dir, "sub", "file"),
		filepath.Join(outside, "kept"),
	} {
		must(t, os.WriteFile(p, []byte("text"), 0o600))
	}
	must(t, os.Symlink(outside, filepath.Join(dir, "to-folder")))
	must(t, os.Symlink(filepath.Join(outside, "kept"), filepath.Join(dir, "to-file")))
	must(t, os.Symlink(outside, filepath.Join(dir, "sub", "deep", "to-folder")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	d, err = Open(dir)
	must(t, err)
	t.Cleanup(func() {
		d.Close()
		if text, err := os.ReadFile(filepath.Join(outside, "kept")); string(text) != "text" {
			t.Errorf("outside was touched: %q, %v", text, err)
		}
	})
	return d, dir, outside
}

func TestNothingIsFollowed(t *testing.T) {
	d, dir, outside := scene(t)
	for _, name := range []string{
		"to-file", "to-folder", "pipe", "sub", "..", ".", "", "sub/file", "/etc/passwd",
		"../outside/kept",
	} {
		for _, flag := range []int{
			os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREATE,
			os.O_RDWR | os.O_CREATE | os.O_EXCL,
		} {
			if f, err := d.OpenFile(name, flag); err == nil {
				t.Errorf("%q was opened with flags %x: %s", name, flag, f.Name())
				f.Close()
			}
		}
	}
	for _, name := range []string{"to-file", "to-folder", "pipe", "file", "..", ".", "", "sub/deep", outside} {
		if sub, err := d.Sub(name); err == nil {
			t.Errorf("%q was entered", name)
			sub.Close()
		}
	}
	if _, err := Walk(filepath.Join(dir, "to-folder")); err == nil {
		t.Error("a link at the end was followed")
	}
	must(t, os.Mkdir(filepath.Join(outside, "in"), 0o700))
	if _, err := Walk(filepath.Join(dir, "to-folder", "in")); err == nil {
		t.Error("a link on the way was followed")
	}
	for _, p := range []string{"relative", dir + "/../dir", dir + "/"} {
		if _, err := Walk(p); err == nil {
			t.Errorf("%q was opened", p)
		}
	}
	walked, err := Walk(filepath.Join(dir, "sub"))
	must(t, err)
	defer walked.Close()
	if !d.Leads("sub", walked) || d.Leads("to-folder", walked) {
		t.Error("another folder was opened")
	}
}

// TestMovedAway: what was opened stays what it is, whatever gets its name.
func TestMovedAway(t *testing.T) {
	d, dir, outside := scene(t)
	sub, err := d.Sub("sub")
	must(t, err)
	defer sub.Close()
	must(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "moved")))
	must(t, os.Symlink(outside, filepath.Join(dir, "sub")))
	if d.Leads("sub", sub) || !d.Leads("moved", sub) {
		t.Error("the name leads where it did not")
	}
	f, err := sub.OpenFile("new", os.O_RDWR|os.O_CREATE)
	must(t, err)
	must(t, f.Close())
	must(t, sub.Rename("new", "newer"))
	if _, err := os.Lstat(filepath.Join(dir, "moved", "newer")); err != nil {
		t.Error(err)
	}
	must(t, d.RemoveAll("sub")) // the link
	if _, err := os.Lstat(outside); err != nil {
		t.Error(err)
	}
}

func TestRemoveAll(t *testing.T) {
	d, dir, _ := scene(t)
	for _, name := range []string{"sub", "to-file", "pipe", "nothing"} {
		if err := d.RemoveAll(name); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	for _, name := range []string{"..", ".", "../outside", ""} {
		if err := errors.Join(d.RemoveAll(name), d.Remove(name), d.RemoveDir(name), d.Rename(name, "x"),
			d.Rename("file", name)); err == nil {
			t.Errorf("%q was removed or renamed", name)
		}
	}
}

// TestOwner: in another user's folder root uses that user's files only, and what it makes is his.
func TestOwner(t *testing.T) {
	needs.Have(t, os.Geteuid() == 0, "only root reaches another user's files")
	const user = 12345
	d, dir, _ := scene(t)
	must(t, os.Chown(dir, user, user))
	theirs, err := Open(dir)
	must(t, err)
	defer theirs.Close()
	if _, err := theirs.OpenFile("file", os.O_RDWR); !errors.Is(err, ErrOwner) {
		t.Errorf("root's own: %v", err)
	}
	if _, err := theirs.OpenFile("file", os.O_RDWR|os.O_CREATE); !errors.Is(err, ErrOwner) {
		t.Errorf("root's own: %v", err)
	}
	if _, err := theirs.Sub("sub"); !errors.Is(err, ErrOwner) {
		t.Errorf("root's own: %v", err)
	}
	for _, made := range []func() error{
		func() error {
			f, err := theirs.OpenFile("made", os.O_RDWR|os.O_CREATE)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		func() error { return theirs.Mkdir("made-folder") },
	} {
		must(t, made())
	}
	for _, name := range []string{"made", "made-folder"} {
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(dir, name), &st))
		if st.Uid != user || st.Mode&0o077 != 0 {
			t.Errorf("%s belongs to %d, mode %o", name, st.Uid, st.Mode)
		}
	}
	if theirs.UID() != user || d.UID() != 0 {
		t.Errorf("owners %d and %d", theirs.UID(), d.UID())
	}
}

// TestGive: the owner of a folder may put something else in the place of a folder that was made for
// him just now. That does not become his.
func TestGive(t *testing.T) {
	needs.Have(t, os.Geteuid() == 0, "only root gives files to others")
	d, dir, outside := scene(t)
	const user = 12345
	d.uid, d.gid = user, user
	his := filepath.Join(dir, "his")
	must(t, errors.Join(os.Mkdir(his, 0o700), os.Chown(his, user+1, user+1)))
	for _, name := range []string{"file", "to-file", "to-folder", "pipe", "sub", "his", "none"} {
		if err := d.give(name); err == nil {
			t.Errorf("%s was given away", name)
		}
	}
	for _, path := range []string{
		dir, outside, filepath.Join(dir, "file"), filepath.Join(dir, "sub"),
		filepath.Join(outside, "kept"),
	} {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Uid != 0 {
			t.Errorf("%s: %v, of user %d", path, err, st.Uid)
		}
	}
	must(t, d.Mkdir("new"))
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, "new"), &st); err != nil || st.Uid != user || st.Gid != user {
		t.Errorf("the new folder: %v, of user %d", err, st.Uid)
	}
}
