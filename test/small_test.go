// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// A disk is a small file system of its own.
type disk struct {
	t   testing.TB
	dir string
}

// newDisk mounts a tmpfs.
func newDisk(t testing.TB, size string) *disk {
	t.Helper()
	needs.Have(t, runtime.GOOS == "linux" && os.Getuid() == 0, "mounting a tmpfs needs Linux and root")
	d := &disk{t: t, dir: t.TempDir()}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", d.dir).CombinedOutput()
	needs.Have(t, err == nil, "mounting a tmpfs needs the right to: %v: %s", err, out)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", d.dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return d
}

// remount changes an option of the mount, such as size or ro.
func (d *disk) remount(option string) {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,"+option, d.dir).CombinedOutput(); err != nil {
		d.t.Fatalf("remount: %v: %s", err, out)
	}
}

// fill takes all free space, down to the last page.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	must(d.t, err)
	defer f.Close()
	for _, n := range []int{1 << 20, 4096} {
		for {
			if _, err := f.Write(make([]byte, n)); err != nil {
				break
			}
		}
	}
}

// free gives back what fill took.
func (d *disk) free() {
	d.t.Helper()
	must(d.t, os.Remove(filepath.Join(d.dir, "filler")))
}
