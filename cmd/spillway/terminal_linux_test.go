// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spillwaylog/spillway/internal/needs"
)

// openPTY returns both ends of a pseudo-terminal of that width.
func openPTY(t *testing.T, width uint16) (outside, inside *os.File) {
	t.Helper()
	outside, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	needs.Have(t, err == nil, "no pseudo-terminals here: mount devpts (%v)", err)
	t.Cleanup(func() { outside.Close() })
	n, err := unix.IoctlGetInt(int(outside.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(outside.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inside.Close() })
	if err := unix.IoctlSetWinsize(int(inside.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}); err != nil {
		t.Fatal(err)
	}
	return outside, inside
}

// readPTY returns what was written to the inside of a pseudo-terminal since it was called last.
func readPTY(t *testing.T, outside, inside *os.File) string {
	t.Helper()
	if _, err := inside.WriteString("\x00"); err != nil { // the end of what is to be read
		t.Fatal(err)
	}
	var got []byte
	for b := make([]byte, 4096); !bytes.HasSuffix(got, []byte{0}); {
		n, err := outside.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
	}
	return string(got[:len(got)-1])
}

// shows plays what a terminal gets: carriage returns, ends of lines, and the code that clears the
// rest of a line.
func shows(text string) string {
	var screen []string
	var line []byte
	col := 0
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "\x1b[K"):
			line, text = line[:col], text[3:]
			continue
		case text[0] == '\r':
			col = 0
		case text[0] == '\n':
			screen, line, col = append(screen, string(line)), nil, 0
		default:
			if col == len(line) {
				line = append(line, 0)
			}
			line[col] = text[0]
			col++
		}
		text = text[1:]
	}
	return strings.Join(append(screen, string(line)), "\n")
}

// TestTerminal: whatever is written, the live line stands below it, in one piece, and never in the
// middle of somebody's line.
func TestTerminal(t *testing.T) {
	outside, inside := openPTY(t, 20)
	term := openTerminal(inside)
	if term == nil || openTerminal(&bytes.Buffer{}) != nil || openTerminal(nil) != nil {
		t.Fatal("what is a terminal, and what is not")
	}
	other := &bytes.Buffer{}
	if (*terminal)(nil).through(inside) != inside || term.through(other) != other {
		t.Error("writers that need no terminal are changed")
	}
	w := term.through(inside)
	read := func() string {
		t.Helper()
		return readPTY(t, outside, inside)
	}
	all := ""
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { term.set("in 1") }, "in 1"},
		{func() { term.set("in 2, and far more than fits") }, "in 2, and far more "},
		{func() { term.set("in 3") }, "in 3"},
		{func() { fmt.Fprint(w, "one\n") }, "one\nin 3"},
		{func() { fmt.Fprint(w, "tw") }, "one\ntw"},
		{func() { term.set("in 4") }, "one\ntw"},
		{func() { fmt.Fprint(w, "o\n") }, "one\ntwo\nin 4"},
		{func() { term.set("") }, "one\ntwo\n"},
		{func() { fmt.Fprint(w, "three\n") }, "one\ntwo\nthree\n"},
	} {
		step.do()
		all += read()
		if got := shows(all); got != step.want {
			t.Fatalf("the terminal shows %q, want %q; it got %q", got, step.want, all)
		}
	}
}

// TestServeOnATerminal: there it has a live line, and a table at its end.
func TestServeOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	outside, inside := openPTY(t, 200)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{
			"serve", "--listen", "forward://127.0.0.1:0", "--data",
			filepath.Join(t.TempDir(), "data"),
		}, &streams{strings.NewReader(""), inside, inside})
		_, _ = inside.WriteString("\x00")
	}()
	var got []byte
	for b := make([]byte, 4096); !bytes.HasSuffix(got, []byte{0}); {
		n, err := outside.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
		if strings.Contains(shows(string(got)),
			"\nevents in 0, 0/s | stdout: out 0, 0/s, nothing behind | journal 0 B of 4.0 GiB | 0 connections") {
			cancel()
		}
	}
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
	end := shows(string(got))
	for _, want := range []string{
		"msg=listening code=input-listening url=forward://127.0.0.1:", "\nINPUT ",
		"\nOUTPUT ", "\njournal: 0 B used of 4.0 GiB",
	} {
		if !strings.Contains(end, want) {
			t.Errorf("the terminal does not show %q at the end: %s", want, end)
		}
	}
	if strings.Contains(end, "\nevents in 0") {
		t.Errorf("the live line is left over: %s", end)
	}
}

// TestReplayOnATerminal: there a replay has a bar, which is gone at its end.
func TestReplayOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	outside, inside := openPTY(t, 100)
	data := t.TempDir()
	mustCloseStore(t, putLetters(t, data, threeLetters()...))
	server, err := net.Listen("tcp", "127.0.0.1:0") // which acks nothing
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	code := make(chan int, 1)
	go func() {
		args := []string{"replay", data, "--to", "forward://" + server.Addr().String()}
		code <- run(ctx, args, &streams{strings.NewReader(""), inside, inside})
		_, _ = inside.WriteString("\x00")
	}()
	var got []byte
	for b := make([]byte, 4096); !bytes.HasSuffix(got, []byte{0}); {
		n, err := outside.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b[:n]...)
		if strings.Contains(shows(string(got)), "[>                   ] 0% 0 of 6 events acked") {
			cancel()
		}
	}
	end := shows(string(got))
	want := "sent 3 letters, 6 events; acked 0 letters, 0 events; left 3 letters, 6 events\n" +
		"spillway: 3 letters, 6 events not acked: context canceled\n\x00"
	if c := <-code; c != 1 || end != want {
		t.Errorf("exit code %d; the terminal shows %q, want %q", c, end, want)
	}
}

// TestTopOnATerminal: it takes the whole of it, is as wide as it, ends with q, and leaves the
// terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	admin, _ := serveTelling(t)
	for _, end := range []string{"q", "\x03", ""} { // the last one: a signal, which ends the context
		outside, inside := openPTY(t, 80)
		before, err := unix.IoctlGetTermios(int(inside.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, []string{"top", "--admin", admin, "--every", "100ms"}, &streams{inside, inside, inside})
			_, _ = inside.WriteString("\x00")
		}()
		var got []byte
		wide := false
		for b := make([]byte, 4096); !bytes.HasSuffix(got, []byte{0}); {
			n, err := outside.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b[:n]...)
			page := got[max(0, bytes.LastIndex(got, []byte(topLeft))):]
			switch {
			case !bytes.HasSuffix(page, []byte(clearBelow)):
			case !wide && bytes.Contains(page, []byte("\x1b[1mOUTPUT")) && bytes.Contains(page, []byte(" works")):
				for line := range strings.SplitSeq(string(page), "\r\n") {
					if len(strings.ReplaceAll(line, "\x1b", "")) > 79+len("[H[1m[0m[K[J") {
						t.Errorf("too wide: %q", line)
					}
				}
				wide = true
				if err := unix.IoctlSetWinsize(int(inside.Fd()), unix.TIOCSWINSZ,
					&unix.Winsize{Row: 6, Col: 132}); err != nil {
					t.Fatal(err)
				}
			case wide && bytes.Count(page, []byte("\n")) == 5: // and the page has six lines
				if end == "" {
					cancel()
				} else if _, err := outside.WriteString(end); err != nil {
					t.Fatal(err)
				}
			}
		}
		after, err := unix.IoctlGetTermios(int(inside.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if c := <-code; c != 0 || *after != *before || !strings.HasPrefix(string(got), enterPage) ||
			!strings.HasSuffix(string(got), leavePage+"\x00") {
			t.Errorf("end %q: exit code %d; it began with %q and ended with %q; %+v became %+v", end, c, got[:20],
				got[len(got)-20:], before, after)
		}
	}
}
