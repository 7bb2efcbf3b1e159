// SPDX-License-Identifier: Apache-2.0

package test

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

// pipe notes the lines that come through a pipe, which it makes, until end has been called. Lines
// come at least once: of those of a stream that came before only the first count.
func (l *ledger) pipe(t testing.TB, path string) (end func()) {
	t.Helper()
	must(t, unix.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	const last = "the end\n"
	var read sync.WaitGroup
	read.Go(func() {
		for in := bufio.NewReader(f); ; {
			text, err := in.ReadBytes('\n')
			if err != nil || string(text) == last {
				return
			}
			line, err := parseLine(text)
			if err != nil {
				l.mu.Lock()
				l.complain("%q: %v", tail(string(text), 300), err)
				l.mu.Unlock()
				continue
			}
			l.line(line)
		}
	})
	return func() {
		_, err := f.WriteString(last)
		must(t, err)
		read.Wait()
		must(t, f.Close())
		l.mu.Lock()
		defer l.mu.Unlock()
		for k, numbers := range l.streams {
			next := uint64(0)
			l.streams[k] = slices.DeleteFunc(numbers, func(n uint64) bool {
				if n < next {
					return true
				}
				next = n + 1
				return false
			})
		}
	}
}

// sort forgets in what order events came.
func (l *ledger) sort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, numbers := range l.streams {
		slices.Sort(numbers)
	}
}

// file notes all lines of a file, each stream in its order, and returns how many there are.
func (l *ledger) file(t testing.TB, path string) (lines int) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	for r := bufio.NewReader(f); ; lines++ { // all lines of a long run are too much for memory
		b, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(b) == 0 {
			return lines
		}
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		line, err := parseLine(b)
		if err != nil {
			t.Errorf("%s: line %d: %q: %v", path, lines, tail(string(b), 300), err)
			return lines
		}
		l.line(line)
	}
}

// shared notes all lines of a shared file, and of those that it was rotated to. Unless each is
// there once, fragments are passed over and counted, and so are lines that come again.
func (l *ledger) shared(t testing.TB, path string, once bool) (lines, torn int) {
	t.Helper()
	base := path[:len(path)-len(filepath.Ext(path))]
	paths, err := filepath.Glob(base + "-*")
	must(t, err)
	for _, path := range append(paths, path) { // which are in the order of their times
		text, err := os.ReadFile(path)
		must(t, err)
		switch plain, packed := strings.CutSuffix(path, ".gz"); {
		case strings.HasSuffix(path, ".tmp"), packed && slices.Contains(paths, plain):
			continue // killed while it was packed, or before the other was removed
		case packed:
			z, err := gzip.NewReader(bytes.NewReader(text))
			must(t, err)
			text, err = io.ReadAll(z)
			must(t, err)
		}
		for b := range bytes.Lines(text) {
			line, err := parseLine(b)
			if err == nil && !json.Valid(b) {
				err = errors.New("more than an object")
			}
			switch {
			case err == nil:
				l.line(line)
				lines++
			case once:
				t.Fatalf("%s: line %d: %q: %v", path, lines, tail(string(b), 300), err)
			default:
				torn++
			}
		}
	}
	if once {
		return lines, 0
	}
	l.sort() // a line right behind a fragment comes again behind its batch
	for k, numbers := range l.streams {
		l.streams[k] = slices.Compact(numbers)
	}
	return lines, torn
}
