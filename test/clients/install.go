// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spillwaylog/spillway/internal/needs"
)

// install returns the folder of the user's cache in which the files of a program are, those that
// build put beside them included. build runs where there is no such folder yet, in one that gets
// its name when it has succeeded.
func install(name string, files []string, build func(dir string) error) (string, error) {
	hash := sha256.New()
	contents := make([][]byte, len(files))
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		contents[i] = b
		fmt.Fprintf(hash, "%s %d\n%s", strings.TrimPrefix(filepath.ToSlash(file), "../"), len(b), b)
	}
	cache, err := needs.Cache()
	if err != nil {
		return "", err
	}
	final := filepath.Join(cache, fmt.Sprintf("%s-%x", name, hash.Sum(nil)[:8]))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	dir, err := os.MkdirTemp(cache, name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for i, file := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), contents[i], 0o600); err != nil {
			return "", err
		}
	}
	if err := build(dir); err != nil {
		return "", err
	}
	if err := os.Rename(dir, final); err != nil {
		if _, there := os.Stat(final); there != nil {
			return "", err
		} // else another process was faster
	}
	return final, nil
}

// downloads is the folder in which an installer keeps what it has downloaded, beside what is
// installed: dir is where it installs.
func downloads(dir, installer string) string {
	return filepath.Join(filepath.Dir(dir), "downloads", installer)
}

// run runs a command to its end; the error has what it said.
func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
