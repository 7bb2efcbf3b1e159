// SPDX-License-Identifier: Apache-2.0

package test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestNobodyReads: when the reader of standard output goes away, the collector ends, says why, and
// what was not written comes out of the next one.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	s, _ := newSetup(t)
	s.to = []string{"stdout:"}
	r, w, err := os.Pipe()
	must(t, err)
	s.stdout = w
	c := startCollector(t, s)
	must(t, w.Close())
	must(t, r.Close())
	send := exec.Command(lean.build(t), "send", "--to", "forward://"+c.addr)
	send.Stdin = strings.NewReader("unread\n")
	if out, err := send.CombinedOutput(); err != nil || string(out) != "1 acked\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if code := c.wait(); code != 1 || c.log.find("spillway: nobody reads standard output any more") == "" {
		t.Errorf("exit code %d: %s", code, c.log)
	}
	var out syncBuffer
	s.stdout = &out
	c = startCollector(t, s)
	eventually(t, "the event comes out", func() bool { return strings.Contains(string(out.bytes()), "unread") })
	c.stop()
}

// TestNobodyReadsTheLog: who reads its log may go away, and the collector goes on.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	s, out := newSetup(t)
	addr := needs.Address()
	r, w, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(checked.build(t), "serve", "--listen", "forward://"+addr, "--to", s.to[0], "--data", s.data)
	cmd.Stderr = w
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	must(t, w.Close())
	must(t, r.Close())
	eventually(t, "the collector listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")) // which is told in the log
		conn.Close()
		return err == nil
	})
	must(t, cmd.Process.Signal(syscall.SIGUSR1))
	must(t, cmd.Process.Signal(syscall.SIGHUP))
	send := exec.Command(lean.build(t), "send", "--to", "forward://"+addr)
	send.Stdin = strings.NewReader("taken\n")
	if text, err := send.CombinedOutput(); err != nil || string(text) != "1 acked\n" {
		t.Fatalf("%v: %s", err, text)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if lines := readLines(t, out); len(lines) != 1 {
		t.Errorf("%v", lines)
	}
}

// TestSignalsWhileOpening: a signal that asks for something does not end a collector that does not
// listen yet. The lock on the socket's folder holds it up.
func TestSignalsWhileOpening(t *testing.T) {
	t.Parallel()
	s, _ := newSetup(t)
	dir, err := os.MkdirTemp("", "spw")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	folder, err := os.Open(dir)
	must(t, err)
	defer folder.Close()
	must(t, syscall.Flock(int(folder.Fd()), syscall.LOCK_EX))
	s.listen = []string{"forward+unix://" + filepath.Join(dir, "s")}
	c := launch(t, s)
	eventually(t, "the collector opens its journal", func() bool {
		_, err := os.Stat(filepath.Join(s.data, "journal", "lock"))
		return err == nil || c.over()
	})
	must(t, c.cmd.Process.Signal(syscall.SIGUSR1))
	must(t, c.cmd.Process.Signal(syscall.SIGHUP))
	must(t, folder.Close())
	eventually(t, "the collector listens, or says that the folder was locked for too long", func() bool {
		return c.over() || c.log.find("listening") != ""
	})
	if c.over() && c.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", c.err)
	}
}
