// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// untilListening is standard error; a collector that serves is ended.
type untilListening struct {
	mu     sync.Mutex
	text   strings.Builder
	cancel func()
}

func (u *untilListening) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if bytes.Contains(p, []byte("listening")) {
		u.cancel()
	}
	return u.text.Write(p)
}

func (u *untilListening) String() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text.String()
}

// TestServeRefusesAtOnce: an output that can never work ends the start with one sentence that names
// it, before anything is listened on or left behind. The other output is healthy.
func TestServeRefusesAtOnce(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("folder"), 0o700), syscall.Mkfifo(at("fifo"), 0o600),
		os.Symlink("loop", at("loop")), os.Symlink("nowhere", at("dangling")), os.Symlink("file", at("link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ to, says string }{
		{"file:///proc/1/nope/x", "no such file or directory"},
		{"file:///proc/1/nope/{tag}.{date}", "no such file or directory"},
		{"file:///proc/self/x", "takes no new file"},
		{"file:///sys/x", "takes no new file"},
		{"file:///dev/full", "not a regular file: a device"},
		{"file://" + at("file/x"), "not a directory"},
		{"file://" + at("file/{tag}"), "not a directory"},
		{"file://" + at("folder"), "is a directory"},
		{"file://" + at("folder") + "/", "the name of the file is missing"},
		{"file://" + at("fifo"), "not a regular file: a FIFO"},
		{"file://" + at("loop"), "a symbolic link"},
		{"file://" + at("loop/x"), "too many levels of symbolic links"},
		{"file://" + at("dangling/x"), "no such file or directory"},
		{"file://" + at("link"), "a symbolic link"},
		{"file://" + at("{nonsense}"), "no placeholder {nonsense}"},
		{"file://" + at("x?max_size=1&keep=-1"), "keep"},
		{"forward+tls://h?ca=" + at("none"), "no such file or directory"},
		{"forward://h?shared_key_file=" + at("none"), "no such file or directory"},
		{"forward://h?window=0", "window"},
		{"stdout:?colour=always", "unknown parameter"},
		{"discard:?max_behind=lots", "max_behind"},
		{"stderr:", "no output of this kind"},
		{"", "--to: the URL is empty"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		said := &untilListening{cancel: cancel}
		data := filepath.Join(t.TempDir(), "data")
		code := run(ctx, []string{
			"serve", "--listen", "forward://127.0.0.1:0", "--data", data, "--to", "discard:",
			"--to", c.to,
		}, &streams{strings.NewReader(""), io.Discard, said})
		cancel()
		text := said.String()
		switch {
		case strings.Contains(text, "listening"):
			t.Errorf("%s: it serves: %s", c.to, text)
		case code != exitFailed && code != exitUsage:
			t.Errorf("%s: exit code %d", c.to, code)
		case !strings.Contains(text, c.says) || !strings.Contains(text, strings.SplitN(c.to, "?", 2)[0]) ||
			strings.Count(text, "\n") > 2:
			t.Errorf("%s: %q, want one line with %q", c.to, text, c.says)
		}
	}
	left, err := fs.Glob(os.DirFS(dir), "*")
	if err != nil || len(left) != 6 {
		t.Errorf("left: %s, %v", strings.Join(left, " "), err)
	}
}
