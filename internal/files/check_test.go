// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCheck: what can never be written is an error, what can is none, and nothing is left behind.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for path, want := range map[string]string{
		"file":             "",
		"new":              "",
		"{tag}":            "",
		"a/b/c/new":        "",
		"a/b/{tag}/new":    "",
		"{tag}/file/x":     "", // which tag comes is not known
		"folder/{date}":    "",
		"folder":           "is a directory",
		"file/x":           "file",
		"file/a/b/{tag}":   "file",
		"{nonsense}":       "no placeholder",
		"x/" + long + "/x": long,
		"x/" + long:        "too long",
	} {
		err := Check(filepath.Join(dir, filepath.FromSlash(path)), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

var long = strings.Repeat("long", 100)

// TestCheckKinds: what is there and is no file is told.
func TestCheckKinds(t *testing.T) {
	dir := t.TempDir()
	for kind, make := range kinds(t, filepath.Join(dir, "target")) {
		path := filepath.Join(dir, kind)
		make(path)
		if err := Check(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestLasting: a disk that is full or fails, or a server that is away, is no reason not to start.
func TestLasting(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOENT: true, syscall.EACCES: true, syscall.EPERM: true, syscall.ENOTDIR: true, syscall.EROFS: true,
		syscall.EISDIR: true, syscall.ELOOP: true, syscall.ENAMETOOLONG: true, ErrKind: true,
		syscall.ENOSPC: false, syscall.EIO: false, syscall.EMFILE: false, syscall.ETIMEDOUT: false,
		errors.New("x"): false,
	} {
		if got := lasting(&fs.PathError{Op: "open", Path: "x", Err: err}); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
