// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/cmd/internal/inlet"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/internal/window"
	"github.com/spillwaylog/spillway/ring"
)

// leaves checks what a folder has left of rings and inlets.
func leaves(t *testing.T, dir string, want int) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dir, "spillway-*", "*")); len(left) != want {
		t.Errorf("%q, want %d", left, want)
	}
}

func TestFollow(t *testing.T) {
	url, _, stop := serve(t)
	dir := needs.Shm(t)
	in := `{"time":"2026-11-21T02:03:04.5Z","tag":"a","n":1}` + "\r\n\n" +
		"text\n" +
		`{"n":2,"time":3,"tag":"b"}` + "\n" +
		`{"time":"2426-11-21T02:03:04.5Z","tag":"a","n":3}` + "\n" +
		"no newline at the end"
	got := command(t, in, "send", "--follow", "--timeout", "5m", "--to", url, "--shm", dir, "--tag", "other", "--field",
		"line", "--time-key", "time", "--tag-key", "tag")
	if got.code != 0 || got.out != "5 acked\n" || strings.Count(got.err, "\n") != 7 ||
		!strings.Contains(got.err, "line 4: the time under") {
		t.Errorf("%+v", got)
	}
	leaves(t, dir, 0)
	lines := strings.Split(strings.TrimSuffix(stop(), "\n"), "\n")
	for _, want := range []string{ // those of a tag in their order
		`{"time":"2026-11-21T02:03:04.500000000Z","tag":"a","n":1}`,
		`"tag":"a","time_":"2426-11-21T02:03:04.5Z","n":3}`,
		`"tag":"other","line":"text"}`,
		`"tag":"other","line":"no newline at the end"}`,
		`"tag":"b","n":2,"time_":3}`,
	} {
		_, tag, _ := strings.Cut(want, `"tag":`)
		tag, _, _ = strings.Cut(tag, ",")
		i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, `"tag":`+tag) })
		if i < 0 || !strings.HasSuffix(lines[i], want) {
			t.Fatalf("%s is missing, or in another place: %q", want, lines)
		}
		lines = slices.Delete(lines, i, i+1)
	}
	if len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}

// TestFollowLeaves: what is not acked in time is told, stays, and is the next one's.
func TestFollowLeaves(t *testing.T) {
	url, _, stop := serve(t)
	dir := needs.Shm(t)
	down := "forward+unix://" + filepath.Join(t.TempDir(), "none")
	args := []string{"send", "--follow", "--shm", dir, "--timeout", "50ms", "--to"}
	got := command(t, "one\ntwo\n", append(args, down)...)
	if got.code != 1 || got.out != "0 acked\n" ||
		!strings.Contains(got.err, "2 events not acked within 50ms; the next send --follow --name send sends them") {
		t.Errorf("%+v", got)
	}
	leaves(t, dir, 1)
	// For another server it is not meant.
	if got := command(t, "three\n", "send", "--follow", "--timeout", "5m", "--shm", dir, "--to", url); got.code != 0 ||
		got.out != "1 acked\n" {
		t.Errorf("%+v", got)
	}
	leaves(t, dir, 1)
	if got := strings.Count(stop(), "\n"); got != 1 {
		t.Errorf("%d lines", got)
	}
}

// TestFollowWaits: a ring that its owner is just letting go of is waited for, so that what is read
// now does not come before it.
func TestFollowWaits(t *testing.T) {
	defer func(d time.Duration) { ringPatience = d }(ringPatience)
	ringPatience = 4 * time.Minute
	sock := filepath.Join(t.TempDir(), "s")
	dir := needs.Shm(t)
	args := []string{"send", "--follow", "--shm", dir, "--to", "forward+unix://" + sock}
	if got := command(t, "one\n", append(args, "--timeout", "50ms")...); got.code != 1 {
		t.Fatalf("%+v", got)
	}
	owners, _ := filepath.Glob(filepath.Join(dir, "spillway-*", "send-send.*", "owner"))
	if len(owners) != 1 {
		t.Fatalf("%q", owners)
	}
	owner, err := os.Open(owners[0])
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := syscall.Flock(int(owner.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, _, stop := serveAt(t, "forward+unix://"+sock)
	said, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), append(args, "--timeout", "5m"), &streams{strings.NewReader("two\n"), io.Discard, w})
		w.Close()
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.Contains(line, "is in use by another process, and waited for") {
		t.Errorf("%q, %v", line, err)
	}
	if err := syscall.Flock(int(owner.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, said)
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	leaves(t, dir, 0)
	if text := stop(); !strings.Contains(text, `"one"`) || strings.Index(text, `"two"`) < strings.Index(text, `"one"`) {
		t.Errorf("%s", text)
	}
}

// TestFollowFull: where there is no server, and no room, standard input waits, and all of it comes
// when there is one.
func TestFollowFull(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "s")
	dir := needs.Shm(t)
	const count = 12_000 // 24 MB, more than a ring has
	var in, want strings.Builder
	pad := strings.Repeat("p", 2000)
	for i := range count {
		fmt.Fprintf(&in, `{"n":%d,"pad":%q}`+"\n", i, pad)
		fmt.Fprintf(&want, `"tag":"stdin","n":%d,"pad":%q}`+"\n", i, pad)
	}
	said, w := io.Pipe()
	var out bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{
			"send", "--follow", "--shm", dir, "--to", "forward+unix://" + sock,
			"--timeout", "5m",
		}, &streams{strings.NewReader(in.String()), &out, w})
		w.Close()
	}()
	lines := bufio.NewScanner(said)
	for held := ""; ; { // until no more is read: two attempts find as many events
		if !lines.Scan() {
			t.Fatalf("it ended: %v, %s", lines.Err(), &out)
		}
		_, events, _ := strings.Cut(lines.Text(), "; ")
		if events, _, _ = strings.Cut(events, " events are held"); events != "" && events != "0" && events == held {
			break
		}
		held = events
	}
	_, _, stop := serveAt(t, "forward+unix://"+sock)
	for lines.Scan() { // until it has ended
	}
	if code := <-ended; code != 0 || out.String() != fmt.Sprintf("%d acked\n", count) {
		t.Errorf("%d, %s", code, &out)
	}
	leaves(t, dir, 0)
	var got strings.Builder
	for line := range strings.Lines(stop()) {
		_, rest, _ := strings.Cut(line, ",")
		got.WriteString(rest)
	}
	if got.String() != want.String() {
		t.Errorf("%d bytes, want %d", got.Len(), want.Len())
	}
}

// TestFollowFlags: what cannot be is said before anything is read.
func TestFollowFlags(t *testing.T) {
	dir := needs.Shm(t)
	for _, tc := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{"--name", "a"}, 2, "belong to --follow"},
		{[]string{"--follow", "--name", "a/b"}, 2, "--name"},
		{[]string{"--follow", "--to", "stdout:"}, 2, "cannot send there"},
		{[]string{"--follow", "--to", "forward://h?color=red"}, 2, "color"},
		{[]string{"--follow", "--shm", filepath.Join(dir, "none")}, 1, "no such file"},
	} {
		got := command(t, "never sent\n", append([]string{"send"}, tc.args...)...)
		if got.code != tc.code || !strings.Contains(got.err, tc.err) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	in, err := openInlet(&followFlags{Name: "send", Shm: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if got := command(t, "", "send", "--follow", "--shm", dir); got.code != 1 ||
		!strings.Contains(got.err, "another process has it: give each pipe a --name of its own") {
		t.Errorf("%+v", got)
	}
}

// TestFollowStrange: what cannot be read is told and kept.
func TestFollowStrange(t *testing.T) {
	url, _, _ := serve(t)
	dir := needs.Shm(t)
	f := &followFlags{Name: "send", Shm: dir}
	if err := os.Mkdir(f.home(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.home(), "send-send.inlet"), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := command(t, "one\n", "send", "--follow", "--timeout", "5m", "--shm", dir, "--to", url)
	if got.code != 0 || !strings.Contains(got.err, "it is no inlet; it is "+f.home()+"/send-send.inlet.bad-") {
		t.Errorf("%+v", got)
	}
	leaves(t, dir, 1)
}

// TestFollowInterrupted: a signal is for the application as well, so the rest of what it says is
// taken; and --timeout is the longest that it has for that.
func TestFollowInterrupted(t *testing.T) {
	url, _, stop := serve(t)
	dir := needs.Shm(t)
	for _, ends := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("terminated by the test"))
		timeout := "50ms"
		if ends {
			timeout = "5m"
			go func() {
				_, _ = w.WriteString("last words\n")
				w.Close()
			}()
		}
		var out, errs bytes.Buffer
		code := run(ctx, []string{"send", "--follow", "--to", url, "--shm", dir, "--timeout", timeout},
			&streams{r, &out, &errs})
		switch {
		case ends && (code != 0 || out.String() != "1 acked\n"):
			t.Errorf("%d, %s, %s", code, &out, &errs)
		case !ends && (code != 1 || !strings.Contains(errs.String(),
			"standard input has not ended: terminated by the test")):
			t.Errorf("%d, %s, %s", code, &out, &errs)
		}
		r.Close()
		w.Close()
		if ends { // the other has little time, also to tidy up
			leaves(t, dir, 0)
		}
	}
	if got := stop(); !strings.Contains(got, "last words") {
		t.Errorf("%q", got)
	}
}

// TestFollowSecondSignal: another signal is not waited for.
func TestFollowSecondSignal(t *testing.T) {
	p := &pipeline{sendCmd: &sendCmd{Timeout: time.Hour}}
	ctx, over := context.WithCancel(t.Context())
	guard, stopped := make(chan os.Signal, 1), make(chan struct{}) // until patience listens somebody has to
	signal.Notify(guard, syscall.SIGTERM)
	defer signal.Stop(guard)
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			<-guard // it has come to all that listen
		}
	}()
	p.patience(ctx, over)
	<-stopped
	if ctx.Err() == nil {
		t.Error("it goes on")
	}
}

// TestFollowResolve: a process that was killed between the append of a line and its note has it in
// the ring; one that was killed before that has not.
func TestFollowResolve(t *testing.T) {
	for _, tc := range []struct {
		name                     string
		text                     string
		appended, shipped, ended bool
		want                     string // the next line
	}{
		{name: "before", text: "one\ntwo\nthree\n", want: "two"},
		{name: "between", text: "one\ntwo\nthree\n", appended: true, want: "three"},
		{name: "shipped", text: "one\ntwo\nthree\n", appended: true, shipped: true, want: "three"},
		{name: "shipped before", text: "one\ntwo\nthree\n", shipped: true, want: "two"},
		{name: "blank", text: "one\n\n \r\ntwo\nthree\n", appended: true, want: "three"},
		{name: "equal", text: "one\none\none\nfour\n", appended: true, want: "one"},
		{name: "end", text: "one\ntwo", ended: true, appended: true},
		{name: "end before", text: "one\ntwo", ended: true, want: "two"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url := "forward+unix://" + filepath.Join(t.TempDir(), "none")
			if tc.shipped {
				url, _, _ = serve(t)
			}
			c := &sendCmd{
				To: url, Tag: "t", Timeout: 50 * time.Millisecond,
				followFlags: followFlags{Follow: true, Name: "send", Shm: needs.Shm(t)},
			}
			p := newPipeline(t, c, tc.text)
			line, _, _ := p.inlet.Next()
			if err := p.take(t.Context(), line, false); err != nil {
				t.Fatal(err)
			}
			if tc.ended {
				p.inlet.End()
			}
			line, _, _ = p.inlet.Next()
			for ; len(bytes.TrimSpace(line)) == 0; line, _, _ = p.inlet.Next() {
				p.inlet.Skip()
			}
			if tc.appended {
				payload := p.reader.AppendText(window.AppendPayload(nil, "t"), line)
				if _, _, err := p.mover.AppendKeyed(t.Context(), &p.hint, ring.Now, true, payload); err != nil {
					t.Fatal(err)
				}
			}
			if tc.shipped {
				if err := p.mover.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			next := &pipeline{sendCmd: c, inlet: p.inlet}
			p.inlet.From(inlet.Pipe{Device: 1, Inode: 2})
			for range 2 { // to be killed behind it and to do it again changes nothing
				rings, err := ring.Inspect(p.home())
				if err != nil {
					t.Fatal(err)
				}
				if err := next.resolve(rings); err != nil {
					t.Fatal(err)
				}
			}
			p.inlet.From(inlet.Pipe{Device: 3}) // of another pipe: the rest is a line
			if line, _, _ = p.inlet.Next(); string(line) != tc.want {
				t.Errorf("the next line is %q, want %q", line, tc.want)
			}
			_ = p.close() // nobody listens, perhaps
			_ = p.inlet.Close()
		})
	}
}

// newPipeline has read a text, and taken nothing yet.
func newPipeline(t *testing.T, c *sendCmd, text string) *pipeline {
	t.Helper()
	plan, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline{sendCmd: c}
	if p.reader, err = c.lineReader(true); err != nil {
		t.Fatal(err)
	}
	if p.inlet, err = openInlet(&c.followFlags, nil); err != nil {
		t.Fatal(err)
	}
	if p.mover, err = c.openMover(plan, func(error) {}); err != nil {
		t.Fatal(err)
	}
	p.inlet.From(inlet.Pipe{Device: 1, Inode: 2})
	if err := p.inlet.Read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return p
}
