// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReloadPipe: a configuration that came through a named pipe is not read again, so that nothing
// waits for a writer.
func TestReloadPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		written <- os.WriteFile(pipe, []byte("data: "+dir+
			"/data\ninputs: {in: 'forward://127.0.0.1:0'}\noutputs: {out: 'discard:'}\n"), 0o600)
	}()
	set, err := (&serveCmd{Config: pipe}).setUp(nil)
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.again(); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Fatal(err)
	}
}
