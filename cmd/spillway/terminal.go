// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// A terminal keeps one live line below what else is written to it: before each write the line goes,
// after it the line comes back.
//
//	{"time":…,"tag":"app.web","msg":"hello"}        standard output, if it is this terminal
//	time=… level=WARN msg="bad input" …             standard error
//	events in 12,345, 1,234/s | stdout: …           the live line
type terminal struct {
	file *os.File

	mu    sync.Mutex
	live  string // the live line; empty: none
	shown bool   // it stands on the terminal
	begun bool   // a line has been begun, and not ended
}

// openTerminal returns the terminal that w is, nil if it is none.
func openTerminal(w io.Writer) *terminal {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return &terminal{file: f}
	}
	return nil
}

// draws reports whether lines can be taken back there. A log that pretends to be a terminal has no
// type, or no size.
func (t *terminal) draws() bool {
	kind := os.Getenv("TERM")
	width, _, err := term.GetSize(int(t.file.Fd()))
	return kind != "" && kind != "dumb" && err == nil && width > 0
}

// through returns a writer to w, which writes to this terminal, too. On a nil terminal, and for a w
// that is no terminal, that is w.
func (t *terminal) through(w io.Writer) io.Writer {
	if t == nil || openTerminal(w) == nil {
		return w
	}
	return &throughTerminal{t, w}
}

type throughTerminal struct {
	t *terminal
	w io.Writer
}

func (w *throughTerminal) Write(p []byte) (int, error) {
	t := w.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hideLocked()
	n, err := w.w.Write(p)
	if n > 0 {
		t.begun = p[n-1] != '\n'
	}
	t.showLocked()
	return n, err
}

// set changes the live line; an empty one ends it.
func (t *terminal) set(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hideLocked()
	t.live = line
	t.showLocked()
}

func (t *terminal) hideLocked() {
	if t.shown {
		_, _ = io.WriteString(t.file, "\r\x1b[K") // a live line that cannot be written is no loss
		t.shown = false
	}
}

func (t *terminal) showLocked() {
	if t.live == "" || t.begun || !inForeground(t.file) {
		return
	}
	_, _ = io.WriteString(t.file, t.fit(t.live))
	t.shown = true
}

// fit cuts a line to the width of the terminal: one that is wrapped cannot be taken back. Lines are
// ASCII.
func (t *terminal) fit(line string) string {
	width, _, err := term.GetSize(int(t.file.Fd()))
	if err != nil || width < 2 {
		width = 80
	}
	if len(line) >= width {
		line = line[:width-1]
	}
	return line
}
