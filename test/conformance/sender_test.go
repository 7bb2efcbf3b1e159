// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spillwaylog/spillway"
)

// A sender is a client as the subject of rules. It is started anew for each case.
type sender struct {
	title string
	// start makes the command for a kind of server: plain, login, key, tls, gzip. An empty one:
	// there is no such command.
	start     func(p *probe, kind string, f *fake) *exec.Cmd
	pipelines bool // has several messages in flight
}

func (s *sender) name() string { return s.title }

// A session is a client that runs.
type session struct {
	p    *probe
	cmd  *exec.Cmd
	in   io.WriteCloser
	said bytes.Buffer
	done chan struct{}
	err  error
}

// client starts the client under test against a fake.
func (tr *trial) client(p *probe, kind string, f *fake) *session {
	p.Helper()
	sub := tr.sub.(*sender)
	cmd := sub.start(p, kind, f)
	if cmd == nil {
		p.unseen("needs -client%s", map[string]string{
			"plain": "", "login": "-login", "key": "-login",
			"tls": "-tls",
		}[kind])
	}
	s := &session{p: p, cmd: cmd, done: make(chan struct{})}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, raceOptions)
	cmd.Stdout, cmd.Stderr = &s.said, &s.said
	cmd.WaitDelay = time.Second
	var err error
	s.in, err = cmd.StdinPipe()
	p.must(err)
	p.must(cmd.Start())
	go func() {
		s.err = cmd.Wait()
		close(s.done)
	}()
	p.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-s.done
		if p.Failed() {
			p.Logf("%s: %v\n%s", p.Name(), s.err, tail(s.said.String(), 2000))
		}
	})
	return s
}

// line gives the client a line.
func (s *session) line(text string) {
	s.p.Helper()
	_, err := io.WriteString(s.in, text+"\n")
	s.p.must(err)
}

// finish ends the client's input, waits for the line to have arrived, and of this repository's
// clients for a good end.
func (s *session) finish(f *fake, lines ...string) {
	s.p.Helper()
	s.in.Close()
	for _, text := range lines {
		until(s.p, "the event arrives: "+text, func() bool { return f.has(text) > 0 })
	}
	if !foreign() {
		if err := s.wait(); err != nil {
			s.p.Errorf("the client ends with %v", err)
		}
	}
	for _, text := range lines {
		if n := f.has(text); n != 1 {
			s.p.Errorf("an event is acked %d times: %s", n, text)
		}
	}
}

func (s *session) wait() error {
	s.p.Helper()
	select {
	case <-s.done:
		return s.err
	case <-time.After(2 * *wait):
		s.p.Fatalf("the client does not end")
		return nil
	}
}

var lineCount = 0

// newLine is a line unlike all others.
func newLine() string {
	lineCount++
	return fmt.Sprintf("line %s %d", newID()[:8], lineCount)
}

// secrets are files that commands name.
func secrets(p *probe) (key, password string) {
	p.Helper()
	dir := p.TempDir()
	key, password = filepath.Join(dir, "shared.key"), filepath.Join(dir, "password")
	p.must(os.WriteFile(key, []byte(theKey+"\n"), 0o600))
	p.must(os.WriteFile(password, []byte(thePassword+"\n"), 0o600))
	return key, password
}

// destination is the URL of a fake for this repository's clients.
func destination(p *probe, kind string, f *fake) string {
	p.Helper()
	key, password := secrets(p)
	q := url.Values{}
	scheme := "forward"
	switch kind {
	case "login":
		q.Set("username", theUser)
		q.Set("password_file", password)
		fallthrough
	case "key":
		q.Set("shared_key_file", key)
		q.Set("hostname", "client.example")
	case "tls":
		scheme = "forward+tls"
		q.Set("ca", f.p.ca.File)
	case "gzip", "zstd":
		q.Set("compress", kind)
	}
	u := scheme + "://" + f.addr()
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	return u
}

// send is "spillway send".
var send = &sender{title: "send", start: func(p *probe, kind string, f *fake) *exec.Cmd {
	p.Helper()
	path, err := program()
	p.must(err)
	return exec.Command(path, "send", "--to", destination(p, kind, f))
}}

const (
	loggerEnv = "SPILLWAY_CONFORMANCE_LOGGER" // the destination of the logger that this binary then is
)

// logger is a program that logs.
var logger = &sender{title: "logger", pipelines: true, start: func(p *probe, kind string, f *fake) *exec.Cmd {
	p.Helper()
	u := destination(p, kind, f)
	sep := "?"
	if strings.Contains(u, "?") {
		sep = "&"
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loggerEnv+"="+u+sep+"ack_timeout=1s&dial_timeout=1s&max_backoff=200ms")
	return cmd
}}

// runLogger logs the lines of standard input.
func runLogger(destination string) error {
	l, err := spillway.Open(destination, &spillway.Options{
		Name: "conformance", Shm: "none",
		FlushInterval: time.Millisecond,
	})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		l.Info(lines.Text())
	}
	ctx, cancel := context.WithTimeout(context.Background(), *wait)
	defer cancel()
	return errors.Join(lines.Err(), l.Close(ctx))
}

// command is the client that flags name.
var command = &sender{title: "client", pipelines: true, start: func(p *probe, kind string, f *fake) *exec.Cmd {
	p.Helper()
	text := map[string]string{"plain": *client, "login": *clientLogin, "key": *clientLogin, "tls": *clientTLS}[kind]
	if text == "" {
		return nil
	}
	key, password := secrets(p)
	host, port, _ := net.SplitHostPort(f.addr())
	pairs := []string{
		"{host}", host, "{port}", port, "{addr}", f.addr(), "{key}", theKey, "{key_file}", key,
		"{user}", theUser, "{password}", thePassword, "{password_file}", password,
	}
	if f.p.ca != nil {
		pairs = append(pairs, "{ca}", f.p.ca.File)
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	if runtime.GOOS == "windows" {
		return exec.Command("cmd", "/c", text)
	}
	return exec.Command("sh", "-c", "exec "+text) // so that killing it kills the client
}}

// over tells whether the client has ended.
func (s *session) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
