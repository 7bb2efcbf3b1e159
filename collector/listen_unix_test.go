// SPDX-License-Identifier: Apache-2.0

//go:build unix

package collector

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/spillwaylog/spillway/internal/urls"
)

// socketPath is short: the kernel takes about a hundred bytes.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "spw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func TestUnixSocket(t *testing.T) {
	path := socketPath(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	r := run(t, &Config{
		Dir: filepath.Join(dir, "data"), Outputs: Ends(fileURL(out)),
		Inputs: Ends("forward+unix://" + path),
	})
	send(t, r.client(t), numbered("t", 0, 3))
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	wantFile(t, out, numberedLines("t", 0, 3))
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := socketPath(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	l, err = listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestLiveSocketIsNotReplaced(t *testing.T) {
	path := socketPath(t)
	l, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := listenUnix(path); !errors.Is(err, errLive) {
		t.Errorf("got %v", err)
	}
}

func TestOnlySocketsAreReplaced(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := listenUnix(path); err == nil {
		l.Close()
		t.Fatal("a file was replaced by a socket")
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// listenAt opens a Forward input.
func listenAt(t *testing.T, url string) (*listeners, error) {
	u, err := urls.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	l := &listeners{}
	if err := l.plan(u); err != nil {
		t.Fatal(err)
	}
	return l, l.listen(slog.New(slog.DiscardHandler))
}

// TestUnixNames: an input is called what one may write.
func TestUnixNames(t *testing.T) {
	t.Chdir(filepath.Dir(socketPath(t)))
	if err := os.WriteFile("f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"forward+unix:f":         "forward+unix:f: there is a file at this path, and no socket",
		"forward+unix:./d?tag=t": "forward+unix:./d: this is a directory; the name of the socket is missing",
		"forward+unix:none/s":    "forward+unix:none/s: open none: no such file or directory",
		"forward+unix:///dev":    "forward+unix:///dev: this is a directory; the name of the socket is missing",
	} {
		if _, err := listenAt(t, url); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
	l, err := listenAt(t, "forward+unix:s?host_key=h")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.url != "forward+unix:s" {
		t.Error(l.url)
	}
}
