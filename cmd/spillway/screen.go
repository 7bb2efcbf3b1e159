// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/spillwaylog/spillway/internal/await"
)

// A screen is a whole terminal for as long as it is open. What stood there before comes back when
// it is closed. Keys come as they are pressed, so that q and Ctrl-C end it.
//
//	open ──► raw, another page, no cursor ──► draw … ──► close: all as it was
type screen struct {
	out     *os.File
	before  *term.State // of in; nil: there are no keys
	in      *os.File
	color   bool
	resized chan os.Signal
	ended   chan struct{} // closed when a key or a signal wants the end

	once sync.Once // of ended
	stop func()    // the goroutines
}

// What is written to it, besides lines.
const (
	enterPage  = "\x1b[?1049h\x1b[?25l" // another page, no cursor
	leavePage  = "\x1b[?25h\x1b[?1049l"
	topLeft    = "\x1b[H"
	clearRight = "\x1b[K"
	clearBelow = "\x1b[J"
	plainText  = "\x1b[0m"
)

// looks are those of marks.
var looks = [...]string{styleNone: "", styleHead: "\x1b[1m", styleWarn: "\x1b[33m", styleBad: "\x1b[31m"}

// openScreen takes a terminal, and the keys of another file if that is a terminal, too.
func openScreen(out, in *os.File) (*screen, error) {
	s := &screen{
		out: out, color: os.Getenv("NO_COLOR") == "", resized: make(chan os.Signal, 1),
		ended: make(chan struct{}),
	}
	if in != nil && term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return nil, err
		}
		s.in, s.before = in, before
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals...)
	notifyResized(s.resized)
	ctx, done := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		select {
		case <-signals:
			s.end()
		case <-ctx.Done():
		}
	})
	if s.in != nil {
		keys := func() {
			defer s.guard()
			readKeys(ctx, s.in, s.key)
		}
		if keysEnd {
			running.Go(keys)
		} else {
			go keys() // a key that never comes is not waited for
		}
	}
	s.stop = func() {
		done()
		running.Wait()
		signal.Stop(signals)
		signal.Stop(s.resized)
	}
	if _, err := s.out.WriteString(enterPage); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// readKeys calls key for each byte that comes, until ctx ends or nothing more can come.
func readKeys(ctx context.Context, f *os.File, key func(byte)) {
	for b := make([]byte, 64); await.Readable(ctx, f) == nil; {
		n, err := f.Read(b)
		for _, c := range b[:n] {
			key(c)
		}
		if err != nil && !errors.Is(err, syscall.EAGAIN) { // the terminal is gone
			return
		}
	}
}

// key is a byte of what is typed.
func (s *screen) key(b byte) {
	switch b {
	case 'q', 'Q', 3, 4, 28: // Ctrl-C, Ctrl-D, Ctrl-\
		s.end()
	}
}

func (s *screen) end() { s.once.Do(func() { close(s.ended) }) }

// close gives the terminal back.
func (s *screen) close() {
	s.stop()
	s.restore()
}

// guard is deferred by goroutines: a panic is of no use on a page that goes.
func (s *screen) guard() {
	if r := recover(); r != nil {
		s.restore()
		panic(r)
	}
}

func (s *screen) restore() {
	_, _ = s.out.WriteString(plainText + leavePage) // a terminal that is gone needs none
	if s.before != nil {
		_ = term.Restore(int(s.in.Fd()), s.before)
	}
}

// size is the number of columns and rows.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// draw shows lines, which are printable, and nothing else.
func (s *screen) draw(lines []topLine) error {
	if !inForeground(s.out) {
		return nil
	}
	width, _ := s.size()
	var b strings.Builder
	b.WriteString(topLeft)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n") // and none behind the last one, which would scroll
		}
		look := looks[l.style]
		if !s.color && l.style != styleHead {
			look = ""
		}
		b.WriteString(look)
		// What stands in the last column, clearing what follows it may clear.
		b.WriteString(l.text[:min(len(l.text), width-1)])
		if look != "" {
			b.WriteString(plainText)
		}
		b.WriteString(clearRight)
	}
	b.WriteString(clearBelow)
	_, err := s.out.WriteString(b.String())
	return err
}
