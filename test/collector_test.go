// SPDX-License-Identifier: Apache-2.0

package test

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

// A setup is how a collector is started. Restarted with the same setup it goes on where it was.
type setup struct {
	bin    *program // nil: checked
	listen []string // URLs; nil: a free port of 127.0.0.1; empty: what a file in args says
	to     []string // URLs
	data   string
	args   []string
	stdout io.Writer // nil: discarded
	files  int       // that it may open; 0: what is usual

	cut  func(*collector) // of killUnder, before a kill
	mend func()           // and after it
}

// newSetup is a collector that writes one file per tag into a folder of its own.
func newSetup(t testing.TB) (s *setup, out string) {
	t.Helper()
	dir := t.TempDir()
	out = filepath.Join(dir, "out")
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	return &setup{to: []string{"file://" + out + "/{tag}.jsonl"}, data: filepath.Join(dir, "data")}, out
}

// A collector is a running "spillway serve".
type collector struct {
	t     testing.TB
	cmd   *exec.Cmd
	log   *logBook
	addr  string // of the first TCP listener
	admin string // where it tells of itself
	done  chan struct{}
	err   error // how it ended; read after done
}

// launch starts the process and returns at once.
func launch(t testing.TB, s *setup) *collector {
	t.Helper()
	bin := s.bin
	if bin == nil {
		bin = checked
	}
	listen := s.listen
	if listen == nil {
		listen = []string{"forward://127.0.0.1:0"}
	}
	args := []string{"serve", "--data", s.data, "--admin", "127.0.0.1:0"}
	for _, u := range listen {
		args = append(args, "--listen", u)
	}
	for _, u := range s.to {
		args = append(args, "--to", u)
	}
	args = append([]string{bin.build(t)}, append(args, s.args...)...)
	if s.files > 0 {
		args = append([]string{"sh", "-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(s.files)}, args...)
	}
	c := &collector{t: t, cmd: exec.Command(args[0], args[1:]...), log: newLogBook(), done: make(chan struct{})}
	c.cmd.Stdout = s.stdout
	c.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.log.follow(stderr)
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	t.Cleanup(func() {
		if !c.over() && !t.Failed() {
			c.settles()
		}
		c.kill()
		if text := c.log.String(); t.Failed() && text != "" {
			t.Logf("process %d (%v) said:\n%s", c.cmd.Process.Pid, c.err, tail(text, 4000))
		}
		if strings.Contains(c.log.String(), "DATA RACE") {
			t.Errorf("data race:\n%s", c.log)
		}
	})
	return c
}

var listening = regexp.MustCompile(`listening.*forward(?:\+tls)?://([0-9.]+:[0-9]+|\[[0-9a-f:]+\]:[0-9]+)`)

// startCollector starts the process and waits until it listens.
func startCollector(t testing.TB, s *setup) *collector {
	t.Helper()
	c := launch(t, s)
	sockets := max(1, len(s.listen))
	eventually(t, "the collector listens", func() bool {
		text := c.log.String()
		if c.over() {
			t.Fatalf("the collector ended before it listened: %v\n%s", c.err, text)
		}
		if m := listening.FindStringSubmatch(text); m != nil {
			c.addr = m[1]
		}
		return strings.Count(text, "msg=listening") >= sockets
	})
	if m := tells.FindStringSubmatch(c.log.String()); m != nil {
		c.admin = m[1]
	}
	return c
}

// over tells whether the process has ended.
func (c *collector) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// kill ends the process as kill -9 does, and waits for it.
func (c *collector) kill() {
	_ = c.cmd.Process.Kill() // it may have ended already
	<-c.done
}

// terminate asks the process to end.
func (c *collector) terminate() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Fatal(err)
	}
}

// stop asks the process to end and wants exit code 0. The account adds up, before and after.
func (c *collector) stop() {
	c.t.Helper()
	c.settles()
	c.terminate()
	if code := c.wait(); code != 0 {
		c.t.Errorf("exit code %d after SIGTERM, want 0:\n%s", code, tail(c.log.String(), 4000))
	}
	if err := c.lastAccount().check(); err != nil {
		c.t.Error(err)
	}
}

// forget drops what the process said, of which a test that starts many would keep too much.
func (c *collector) forget() {
	if strings.Contains(c.log.String(), "DATA RACE") || strings.Contains(c.log.String(), "panic:") {
		c.t.Errorf("the collector said:\n%s", c.log)
	}
	c.log = newLogBook()
}

// wait waits for the end of the process and returns its exit code.
func (c *collector) wait() int {
	c.t.Helper()
	eventually(c.t, "the collector ends", c.over)
	return c.cmd.ProcessState.ExitCode()
}

// says waits until one line of the log has all parts in it, and returns it.
func (c *collector) says(parts ...string) string {
	c.t.Helper()
	var line string
	eventually(c.t, fmt.Sprintf("the collector says %q", parts), func() bool {
		line = c.log.find(parts...)
		return line != ""
	})
	return line
}

var cursorLine = regexp.MustCompile(`(?m)^\S+ +\d\S* +(\d+) +(\d+)`)

// behind asks the journal how many records its outputs have not committed yet.
func (c *collector) behind(s *setup) int {
	c.t.Helper()
	text, err := exec.Command(lean.build(c.t), "journal", "ls", s.data).CombinedOutput()
	if err != nil {
		c.t.Fatalf("journal ls: %v\n%s", err, text)
	}
	_, cursors, ok := strings.Cut(string(text), "CURSOR")
	lines := cursorLine.FindAllStringSubmatch(cursors, -1)
	if !ok || len(lines) == 0 {
		c.t.Fatalf("journal ls lists no cursor:\n%s", text)
	}
	records := 0
	for _, l := range lines {
		n, err := strconv.Atoi(l[1])
		if err != nil {
			c.t.Fatal(err)
		}
		records += n
	}
	return records
}

// dialFrom connects to the collector from an address of the loopback range.
func (c *collector) dialFrom(source string) net.Conn {
	c.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}, Timeout: 30 * time.Second}
	conn, err := d.Dial("tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// A logBook holds the lines that a process writes to its standard error.
type logBook struct {
	mu   sync.Mutex
	text strings.Builder
}

func newLogBook() *logBook { return &logBook{} }

func (b *logBook) follow(r io.Reader) {
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

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// find returns the first line that has all parts in it.
func (b *logBook) find(parts ...string) string {
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

func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}
