// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestNobodyReads: when the reader of standard output goes away, the collector ends, says why, and
// what was not written comes out of the next one.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	s, _ := rig.NewSetup(t)
	s.To = []string{"stdout:"}
	r, w, err := os.Pipe()
	rig.Must(t, err)
	s.Stdout = w
	c := rig.StartCollector(t, s)
	rig.Must(t, w.Close())
	rig.Must(t, r.Close())
	send := exec.Command(rig.Lean.Build(t), "send", "--to", "forward://"+c.Addr)
	send.Stdin = strings.NewReader("unread\n")
	if out, err := send.CombinedOutput(); err != nil || string(out) != "1 acked\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if code := c.Wait(); code != 1 || c.Log.Find("spillway: nobody reads standard output any more") == "" ||
		c.Log.Find("not everything was handed on in time") != "" { // it would wait for those 10 seconds
		t.Errorf("exit code %d: %s", code, c.Log)
	}
	var out rig.SyncBuffer
	s.Stdout = &out
	c = rig.StartCollector(t, s)
	rig.Eventually(t, "the event comes out", func() bool { return strings.Contains(string(out.Bytes()), "unread") })
	c.Stop()
}

// TestNobodyReadsTheLog: who reads its log may go away, and the collector goes on.
func TestNobodyReadsTheLog(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	addr := needs.Address()
	r, w, err := os.Pipe()
	rig.Must(t, err)
	cmd := exec.Command(rig.Checked.Build(t), "serve", "--listen", "forward://"+addr, "--to", s.To[0], "--data", s.Data)
	cmd.Stderr = w
	rig.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	rig.Must(t, w.Close())
	rig.Must(t, r.Close())
	rig.Eventually(t, "the collector listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_, err = conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")) // which is told in the log
		conn.Close()
		return err == nil
	})
	rig.Must(t, cmd.Process.Signal(syscall.SIGUSR1))
	rig.Must(t, cmd.Process.Signal(syscall.SIGHUP))
	send := exec.Command(rig.Lean.Build(t), "send", "--to", "forward://"+addr)
	send.Stdin = strings.NewReader("taken\n")
	if text, err := send.CombinedOutput(); err != nil || string(text) != "1 acked\n" {
		t.Fatalf("%v: %s", err, text)
	}
	rig.Must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if lines := rig.ReadLines(t, out); len(lines) != 1 {
		t.Errorf("%v", lines)
	}
}

// TestSignalsWhileOpening: a signal that asks for something does not end a collector that does not
// listen yet. The lock on the socket's folder holds it up.
func TestSignalsWhileOpening(t *testing.T) {
	t.Parallel()
	s, _ := rig.NewSetup(t)
	dir, err := os.MkdirTemp("", "spw")
	rig.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	folder, err := os.Open(dir)
	rig.Must(t, err)
	defer folder.Close()
	rig.Must(t, syscall.Flock(int(folder.Fd()), syscall.LOCK_EX))
	s.Listen = []string{"forward+unix://" + filepath.Join(dir, "s")}
	c := rig.Launch(t, s)
	rig.Eventually(t, "the collector opens its journal", func() bool {
		_, err := os.Stat(filepath.Join(s.Data, "journal", "lock"))
		return err == nil || c.Over()
	})
	rig.Must(t, c.Cmd.Process.Signal(syscall.SIGUSR1))
	rig.Must(t, c.Cmd.Process.Signal(syscall.SIGHUP))
	rig.Must(t, folder.Close())
	rig.Eventually(t, "the collector listens, or says that the folder was locked for too long", func() bool {
		return c.Over() || c.Log.Find("listening") != ""
	})
	if c.Over() && c.Cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", c.Err)
	}
}
