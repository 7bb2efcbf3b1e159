// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Pipe notes the lines that come through a pipe, which it makes, until end has been called. Lines
// come at least once: of those of a stream that came before only the first count.
func (l *Ledger) Pipe(t testing.TB, path string) (end func()) {
	t.Helper()
	Must(t, unix.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	Must(t, err)
	const last = "the end\n"
	var read sync.WaitGroup
	read.Go(func() {
		for in := bufio.NewReader(f); ; {
			text, err := in.ReadBytes('\n')
			if err != nil || string(text) == last {
				return
			}
			line, err := ParseLine(text)
			if err != nil {
				l.Mu.Lock()
				l.Complain("%q: %v", Tail(string(text), 300), err)
				l.Mu.Unlock()
				continue
			}
			l.Line(line)
		}
	})
	return func() {
		_, err := f.WriteString(last)
		Must(t, err)
		read.Wait()
		Must(t, f.Close())
		l.Mu.Lock()
		defer l.Mu.Unlock()
		for k, numbers := range l.Streams {
			next := uint64(0)
			l.Streams[k] = slices.DeleteFunc(numbers, func(n uint64) bool {
				if n < next {
					return true
				}
				next = n + 1
				return false
			})
		}
	}
}

// Sort forgets in what order events came.
func (l *Ledger) Sort() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, numbers := range l.Streams {
		slices.Sort(numbers)
	}
}

// File notes all lines of a file, each stream in its order, and returns how many there are.
func (l *Ledger) File(t testing.TB, path string) (lines int) {
	t.Helper()
	f, err := os.Open(path)
	Must(t, err)
	defer f.Close()
	for r := bufio.NewReader(f); ; lines++ { // all lines of a long run are too much for memory
		b, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(b) == 0 {
			return lines
		}
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		line, err := ParseLine(b)
		if err != nil {
			t.Errorf("%s: line %d: %q: %v", path, lines, Tail(string(b), 300), err)
			return lines
		}
		l.Line(line)
	}
}

// Shared notes all lines of a shared file, and of those that it was rotated to. Unless each is
// there once, fragments are passed over and counted, and so are lines that come again.
func (l *Ledger) Shared(t testing.TB, path string, once bool) (lines, torn int) {
	t.Helper()
	base := path[:len(path)-len(filepath.Ext(path))]
	paths, err := filepath.Glob(base + "-*")
	Must(t, err)
	for _, path := range append(paths, path) { // which are in the order of their times
		text, err := os.ReadFile(path)
		Must(t, err)
		switch plain, packed := strings.CutSuffix(path, ".gz"); {
		case strings.HasSuffix(path, ".tmp"), packed && slices.Contains(paths, plain):
			continue // killed while it was packed, or before the other was removed
		case packed:
			z, err := gzip.NewReader(bytes.NewReader(text))
			Must(t, err)
			text, err = io.ReadAll(z)
			Must(t, err)
		}
		for b := range bytes.Lines(text) {
			line, err := ParseLine(b)
			if err == nil && !json.Valid(b) {
				err = errors.New("more than an object")
			}
			switch {
			case err == nil:
				l.Line(line)
				lines++
			case once:
				t.Fatalf("%s: line %d: %q: %v", path, lines, Tail(string(b), 300), err)
			default:
				torn++
			}
		}
	}
	if once {
		return lines, 0
	}
	l.Sort() // a line right behind a fragment comes again behind its batch
	for k, numbers := range l.Streams {
		l.Streams[k] = slices.Compact(numbers)
	}
	return lines, torn
}
