// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Setup is how a collector is started. Restarted with the same setup it goes on where it was.
type Setup struct {
	Bin    *Program  // nil: checked
	Listen []string  // URLs; nil: a free port of 127.0.0.1; empty: what a file in args says
	To     []string  // URLs
	Data   string    // folder of its journal
	Args   []string  // further flags of serve
	Stdout io.Writer // nil: discarded
	Files  int       // that it may open; 0: what is usual

	Cut  func(*Collector) // of killUnder, before a kill
	Mend func()           // and after it
}

// NewSetup is a collector that writes one file per tag into a folder of its own.
func NewSetup(t testing.TB) (s *Setup, out string) {
	t.Helper()
	dir := t.TempDir()
	out = filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	return &Setup{To: []string{"file://" + out + "/{tag}.jsonl"}, Data: filepath.Join(dir, "data")}, out
}

// A Collector is a running "spillway serve".
type Collector struct {
	T     testing.TB
	Cmd   *exec.Cmd     // the process
	Log   *LogBook      // its standard error
	Addr  string        // of the first TCP listener
	Admin string        // where it tells of itself
	Done  chan struct{} // closed when it has ended
	Err   error         // how it ended; read after Done
}

// Launch starts the process and returns at once.
func Launch(t testing.TB, s *Setup) *Collector {
	t.Helper()
	bin := s.Bin
	if bin == nil {
		bin = Checked
	}
	listen := s.Listen
	if listen == nil {
		listen = []string{"forward://127.0.0.1:0"}
	}
	args := []string{"serve", "--data", s.Data, "--admin", "127.0.0.1:0"}
	for _, u := range listen {
		args = append(args, "--listen", u)
	}
	for _, u := range s.To {
		args = append(args, "--to", u)
	}
	args = append([]string{bin.Build(t)}, append(args, s.Args...)...)
	if s.Files > 0 {
		args = append([]string{"sh", "-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(s.Files)}, args...)
	}
	c := &Collector{T: t, Cmd: exec.Command(args[0], args[1:]...), Log: NewLogBook(), Done: make(chan struct{})}
	c.Cmd.Stdout = s.Stdout
	c.Cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	stderr, err := c.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.Log.Follow(stderr)
		c.Err = c.Cmd.Wait()
		close(c.Done)
	}()
	t.Cleanup(func() {
		if !c.Over() && !t.Failed() {
			c.Settles()
		}
		c.Kill()
		if text := c.Log.String(); t.Failed() && text != "" {
			t.Logf("process %d (%v) said:\n%s", c.Cmd.Process.Pid, c.Err, Tail(text, 4000))
		}
		if strings.Contains(c.Log.String(), "DATA RACE") {
			t.Errorf("data race:\n%s", c.Log)
		}
	})
	return c
}

var listening = regexp.MustCompile(`listening.*forward(?:\+tls)?://([0-9.]+:[0-9]+|\[[0-9a-f:]+\]:[0-9]+)`)

// StartCollector starts the process and waits until it listens.
func StartCollector(t testing.TB, s *Setup) *Collector {
	t.Helper()
	c := Launch(t, s)
	sockets := max(1, len(s.Listen))
	Eventually(t, "the collector listens", func() bool {
		text := c.Log.String()
		if c.Over() {
			t.Fatalf("the collector ended before it listened: %v\n%s", c.Err, text)
		}
		if m := listening.FindStringSubmatch(text); m != nil {
			c.Addr = m[1]
		}
		return strings.Count(text, "msg=listening") >= sockets
	})
	if m := tells.FindStringSubmatch(c.Log.String()); m != nil {
		c.Admin = m[1]
	}
	return c
}

// Over tells whether the process has ended.
func (c *Collector) Over() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// Kill ends the process as kill -9 does, and waits for it.
func (c *Collector) Kill() {
	_ = c.Cmd.Process.Kill() // it may have ended already
	<-c.Done
}

// Terminate asks the process to end.
func (c *Collector) Terminate() {
	c.T.Helper()
	if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.T.Fatal(err)
	}
}

// Stop asks the process to end and wants exit code 0. The account adds up, before and after.
func (c *Collector) Stop() {
	c.T.Helper()
	c.Settles()
	c.Terminate()
	if code := c.Wait(); code != 0 {
		c.T.Errorf("exit code %d after SIGTERM, want 0:\n%s", code, Tail(c.Log.String(), 4000))
	}
	if err := c.LastAccount().Check(); err != nil {
		c.T.Error(err)
	}
}

// Forget drops what the process said, of which a test that starts many would keep too much.
func (c *Collector) Forget() {
	if strings.Contains(c.Log.String(), "DATA RACE") || strings.Contains(c.Log.String(), "panic:") {
		c.T.Errorf("the collector said:\n%s", c.Log)
	}
	c.Log = NewLogBook()
}

// Wait waits for the end of the process and returns its exit code.
func (c *Collector) Wait() int {
	c.T.Helper()
	Eventually(c.T, "the collector ends", c.Over)
	return c.Cmd.ProcessState.ExitCode()
}

// Says waits until one line of the log has all parts in it, and returns it.
func (c *Collector) Says(parts ...string) string {
	c.T.Helper()
	var line string
	Eventually(c.T, fmt.Sprintf("the collector says %q", parts), func() bool {
		line = c.Log.Find(parts...)
		return line != ""
	})
	return line
}

var cursorLine = regexp.MustCompile(`(?m)^\S+ +\d\S* +(\d+) +(\d+)`)

// Behind asks the journal how many records its outputs have not committed yet.
func (c *Collector) Behind(s *Setup) int {
	c.T.Helper()
	text, err := exec.Command(Lean.Build(c.T), "journal", "ls", s.Data).CombinedOutput()
	if err != nil {
		c.T.Fatalf("journal ls: %v\n%s", err, text)
	}
	_, cursors, ok := strings.Cut(string(text), "CURSOR")
	lines := cursorLine.FindAllStringSubmatch(cursors, -1)
	if !ok || len(lines) == 0 {
		c.T.Fatalf("journal ls lists no cursor:\n%s", text)
	}
	records := 0
	for _, l := range lines {
		n, err := strconv.Atoi(l[1])
		if err != nil {
			c.T.Fatal(err)
		}
		records += n
	}
	return records
}

// DialFrom connects to the collector from an address of the loopback range.
func (c *Collector) DialFrom(source string) net.Conn {
	c.T.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 30 * time.Second}
	conn, err := d.Dial("tcp", c.Addr)
	if err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { conn.Close() })
	return conn
}

// A LogBook holds the lines that a process writes to its standard error.
type LogBook struct {
	mu   sync.Mutex
	text strings.Builder
}

// NewLogBook is an empty one.
func NewLogBook() *LogBook { return &LogBook{} }

// Follow reads until the end of what a process says.
func (b *LogBook) Follow(r io.Reader) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		b.mu.Lock()
		b.text.WriteString(line)
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// String is all that it said.
func (b *LogBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Find returns the first line that has all parts in it.
func (b *LogBook) Find(parts ...string) string {
lines:
	for line := range strings.Lines(b.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		return line
	}
	return ""
}

// Tail is the end of a text, n bytes of it.
func Tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}
