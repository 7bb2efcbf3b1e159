// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Line is one line of JSON that the collector wrote.
type Line struct {
	file   string
	Time   time.Time      // its key time
	Tag    string         // its key tag
	Record map[string]any // the rest
}

// Name is the name of an [Event].
func (l Line) Name() string {
	s, _ := l.Record["name"].(string)
	return s
}

// LineFiles returns the files below dir, in the order of their names.
func LineFiles(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ReadLines reads all files below dir; a line that is no event fails the test.
func ReadLines(t testing.TB, dir string) []Line {
	t.Helper()
	var lines []Line
	for _, name := range LineFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 0 && b[len(b)-1] != '\n' {
			t.Errorf("%s ends in the middle of a line: %q", name, Tail(string(b), 200))
		}
		for text := range bytes.Lines(b) {
			l, err := ParseLine(text)
			if err != nil {
				t.Fatalf("%s: %q: %v", name, Tail(string(text), 500), err)
			}
			l.file = name
			lines = append(lines, l)
		}
	}
	return lines
}

// ParseLine reads one line of a JSON Lines file.
func ParseLine(text []byte) (Line, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var l Line
	if err := dec.Decode(&l.Record); err != nil {
		return l, err
	}
	when, _ := l.Record["time"].(string)
	tag, ok := l.Record["tag"].(string)
	if !ok {
		return l, errors.New("no tag")
	}
	l.Tag = tag
	var err error
	l.Time, err = time.Parse(time.RFC3339Nano, when)
	delete(l.Record, "time")
	delete(l.Record, "tag")
	return l, err
}

// A Counter counts the lines of the files below a folder while they grow; it reads each byte once.
type Counter struct {
	dir   string
	seen  map[string]int64 // bytes read so far
	lines int
}

// NewCounter is one of the files below dir.
func NewCounter(dir string) *Counter { return &Counter{dir: dir, seen: map[string]int64{}} }

// Count is how many lines there are by now.
func (c *Counter) Count(t testing.TB) int {
	t.Helper()
	buf := make([]byte, 64<<10)
	for _, name := range LineFiles(t, c.dir) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for {
			n, err := f.ReadAt(buf, c.seen[name])
			c.seen[name] += int64(n)
			c.lines += bytes.Count(buf[:n], []byte{'\n'})
			if err != nil {
				break
			}
		}
		f.Close()
	}
	return c.lines
}

// WaitLines waits until the files below dir have n lines.
func WaitLines(t testing.TB, dir string, n int) {
	t.Helper()
	c := NewCounter(dir)
	have, moved := 0, time.Now()
	Eventually(t, "the output stops growing", func() bool {
		if now := c.Count(t); now != have {
			have, moved = now, time.Now()
		}
		return have >= n || time.Since(moved) > Patience/2
	})
	if have < n {
		t.Fatalf("%d lines in %s, want %d", have, dir, n)
	}
}

// Names returns how often each event's name is in the lines.
func Names(lines []Line) map[string]int {
	m := make(map[string]int, len(lines))
	for _, l := range lines {
		m[l.Name()]++
	}
	return m
}

// WantNames checks that each wanted name is in the lines as often as in want, and no other is.
func WantNames(t testing.TB, lines []Line, want ...string) {
	t.Helper()
	have := Names(lines)
	var wrong []string
	for _, n := range want {
		if have[n] > 0 {
			have[n]--
		} else {
			wrong = append(wrong, "missing "+n)
		}
	}
	for n, times := range have {
		for range times {
			wrong = append(wrong, "too often "+n)
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d lines, want %d; wrong: %d: %s", len(lines), len(want), len(wrong),
			strings.Join(wrong[:min(20, len(wrong))], ", "))
	}
}

// Number is the number of a client's event, -1 of any other.
func (l Line) Number() int {
	text, _ := l.Record["n"].(json.Number)
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return -1
	}
	return n
}

// WantOrder checks that the events of each sender, named sender-number, are in each file in the
// order of their numbers.
func WantOrder(t testing.TB, lines []Line) {
	t.Helper()
	last := map[string]int{}
	for _, l := range lines {
		sender, text, _ := strings.Cut(l.Name(), "-")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("event %q: %v", l.Name(), err)
		}
		key := filepath.Base(l.file) + " " + sender
		if before, ok := last[key]; ok && n <= before {
			t.Fatalf("%s: event %d stands after %d", key, n, before)
		}
		last[key] = n
	}
}
