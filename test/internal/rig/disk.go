// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// A Disk is a small file system of its own.
type Disk struct {
	t   testing.TB
	Dir string // where it is mounted
}

// NewDisk mounts a tmpfs.
func NewDisk(t testing.TB, size string) *Disk {
	t.Helper()
	needs.Have(t, runtime.GOOS == "linux" && os.Getuid() == 0, "mounting a tmpfs needs Linux and root")
	d := &Disk{t: t, Dir: t.TempDir()}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", d.Dir).CombinedOutput()
	needs.Have(t, err == nil, "mounting a tmpfs needs the right to: %v: %s", err, out)
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", d.Dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return d
}

// Remount changes an option of the mount, such as size or ro.
func (d *Disk) Remount(option string) {
	d.t.Helper()
	if out, err := exec.Command("mount", "-o", "remount,"+option, d.Dir).CombinedOutput(); err != nil {
		d.t.Fatalf("remount: %v: %s", err, out)
	}
}

// Fill takes all free space, down to the last page.
func (d *Disk) Fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.Dir, "filler"))
	Must(d.t, err)
	defer f.Close()
	for _, n := range []int{1 << 20, 4096} {
		for {
			if _, err := f.Write(make([]byte, n)); err != nil {
				break
			}
		}
	}
}

// Free gives back what fill took.
func (d *Disk) Free() {
	d.t.Helper()
	Must(d.t, os.Remove(filepath.Join(d.Dir, "filler")))
}
