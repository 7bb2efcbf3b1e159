// SPDX-License-Identifier: Apache-2.0

//go:build unix

package files

import (
	"os"
	"syscall"
	"testing"
)

// kinds makes what is no regular file.
func kinds(t *testing.T, target string) map[string]func(path string) {
	return map[string]func(string){
		"link":      func(path string) { must(t, os.Symlink(target, path)) },
		"dangling":  func(path string) { must(t, os.Symlink(target+"x", path)) },
		"fifo":      func(path string) { must(t, syscall.Mkfifo(path, 0o644)) },
		"directory": func(path string) { must(t, os.Mkdir(path, 0o755)) },
	}
}
