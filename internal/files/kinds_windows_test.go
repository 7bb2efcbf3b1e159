// SPDX-License-Identifier: Apache-2.0

//go:build windows

package files

import (
	"os"
	"testing"
)

// kinds makes what is no regular file.
func kinds(t *testing.T, _ string) map[string]func(path string) {
	return map[string]func(string){"directory": func(path string) { must(t, os.Mkdir(path, 0o755)) }}
}
