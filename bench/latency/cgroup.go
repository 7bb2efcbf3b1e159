// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// A cgroup limits the memory of a process: a child of this process's own group.
type cgroup struct {
	path string
	v2   bool
}

// newCgroup makes one. Root may, where the memory controller is to be had.
func newCgroup(limit int64) (*cgroup, error) {
	v1, v2, err := ownGroup()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, try := range []struct {
		parent, file string
		v2           bool
	}{{v1, "memory.limit_in_bytes", false}, {v2, "memory.max", true}} {
		if try.parent == "" {
			continue
		}
		g := &cgroup{path: filepath.Join(try.parent, fmt.Sprintf("spillway-bench-%d", os.Getpid())), v2: try.v2}
		if err := os.Mkdir(g.path, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		if err := os.WriteFile(filepath.Join(g.path, try.file), fmt.Append(nil, limit), 0o600); err != nil {
			errs = append(errs, err)
			g.remove()
			continue
		}
		return g, nil
	}
	if len(errs) == 0 {
		errs = append(errs, errors.New("no cgroup file system with a memory controller"))
	}
	return nil, errors.Join(errs...)
}

// ownGroup finds the folders of this process's memory group, of either version.
func ownGroup() (v1, v2 string, err error) {
	own := map[string]string{} // controllers → path within the hierarchy
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			for c := range strings.SplitSeq(parts[1], ",") {
				own[c] = parts[2]
			}
		}
	}
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return "", "", err
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 {
			continue
		}
		switch {
		case f[2] == "cgroup" && strings.Contains(","+f[3]+",", ",memory,"):
			v1 = filepath.Join(f[1], own["memory"])
		case f[2] == "cgroup2":
			v2 = filepath.Join(f[1], own[""])
		}
	}
	return v1, v2, nil
}

// contain has cmd start inside the group: version 2 can do that itself, for version 1 a shell joins
// and becomes the program.
func (g *cgroup) contain(cmd *exec.Cmd) error {
	if g.v2 {
		dir, err := os.Open(g.path)
		if err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
		return nil // dir stays open until the program ends
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	cmd.Args = []string{shell, "-c", `echo $$ > "$0/cgroup.procs" && exec "$1"`, g.path, cmd.Path}
	cmd.Path = shell
	return nil
}

func (g *cgroup) remove() { _ = os.Remove(g.path) }
