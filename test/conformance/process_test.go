// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// program builds cmd/spillway, once, unless -program names it.
var program = sync.OnceValues(func() (string, error) {
	if *built != "" {
		return filepath.Abs(*built)
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return "", err
	}
	binaries = dir
	path := filepath.Join(dir, "spillway")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := []string{"build", "-o", path}
	if raceDetector {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./spillway")...)
	cmd.Dir = filepath.Join("..", "..", "cmd")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/spillway: %w\n%s", err, text)
	}
	return path, nil
})

// binaries is the folder of the program; TestMain removes it.
var binaries string

// A process is a running "spillway serve".
type process struct {
	cmd  *exec.Cmd
	args []string
	done chan struct{}
	err  error // how it ended; read after done

	mu  sync.Mutex
	log []string
}

// raceOptions let a process with the race detector end at once.
const raceOptions = "GORACE=halt_on_error=1 atexit_sleep_ms=0"

var listening = regexp.MustCompile(`listening.*forward(?:\+tls)?://([0-9.]+:[0-9]+)`)

// startProcess starts a program and follows what it says.
func startProcess(t testing.TB, path string, args ...string) *process {
	t.Helper()
	o := &process{cmd: exec.Command(path, args...), args: args, done: make(chan struct{})}
	o.cmd.Env = append(os.Environ(), raceOptions)
	stderr, err := o.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			o.mu.Lock()
			o.log = append(o.log, lines.Text())
			o.mu.Unlock()
		}
		o.err = o.cmd.Wait()
		close(o.done)
	}()
	t.Cleanup(func() {
		o.kill()
		if t.Failed() {
			t.Logf("%v: %v\n%s", o.args, o.err, tail(o.said(), 3000))
		} else if strings.Contains(o.said(), "DATA RACE") {
			t.Errorf("data race:\n%s", o.said())
		}
	})
	return o
}

func (o *process) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.log, "\n")
}

// kill ends it as kill -9 does.
func (o *process) kill() {
	_ = o.cmd.Process.Kill() // it may have ended
	<-o.done
}

func (o *process) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// interrupt asks it to end.
func (o *process) interrupt(p *probe) {
	p.Helper()
	p.must(o.cmd.Process.Signal(os.Interrupt))
}

// start returns this repository's server with a setting, and starts it unless it runs.
func (all *servers) start(p *probe, name string) *server {
	p.Helper()
	if s := all.all[name]; s != nil {
		return s
	}
	set, ok := settings[name]
	if !ok {
		p.Fatalf("no setting %q", name)
	}
	s := serve(p, all.t, set(p, all.t))
	all.all[name] = s
	return s
}

// A setting is how this repository's server is started.
type setting struct {
	scheme string // of the URL; "" is forward
	query  string // of the URL
	args   []string
	server server // what the suite needs to know to get in
	dir    string // data and output; "": a new one
}

// serve starts a server, and waits until it listens.
func serve(p *probe, t testing.TB, set *setting) *server {
	p.Helper()
	path, err := program()
	p.must(err)
	if set.dir == "" {
		set.dir = t.TempDir()
	}
	if set.scheme == "" {
		set.scheme = "forward"
	}
	listen := set.server.addr
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	url := set.scheme + "://" + listen
	if set.query != "" {
		url += "?" + set.query
	}
	s := set.server
	file := filepath.Join(set.dir, "out.jsonl")
	args := append([]string{
		"serve", "--listen", url, "--to", "file://" + filepath.ToSlash(file), "--data",
		filepath.Join(set.dir, "data"),
	}, set.args...)
	s.own = startProcess(t, path, args...)
	if s.lines == nil {
		s.lines = follow(file)
	}
	until(p, "the server listens", func() bool {
		text := s.own.said()
		if s.own.over() {
			p.Fatalf("the server ended: %v\n%s", s.own.err, text)
		}
		m := listening.FindStringSubmatch(text)
		if m == nil {
			return false
		}
		s.addr = m[1]
		return true
	})
	return &s
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
