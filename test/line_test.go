// SPDX-License-Identifier: Apache-2.0

package test

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

// A line is one line of JSON that the collector wrote.
type line struct {
	file   string
	time   time.Time
	tag    string
	record map[string]any // the rest
}

// name is the name of an [event].
func (l line) name() string {
	s, _ := l.record["name"].(string)
	return s
}

// jsonlFiles returns the files below dir, in the order of their names.
func jsonlFiles(t testing.TB, dir string) []string {
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

// readLines reads all files below dir; a line that is no event fails the test.
func readLines(t testing.TB, dir string) []line {
	t.Helper()
	var lines []line
	for _, name := range jsonlFiles(t, dir) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 0 && b[len(b)-1] != '\n' {
			t.Errorf("%s ends in the middle of a line: %q", name, tail(string(b), 200))
		}
		for text := range bytes.Lines(b) {
			l, err := parseLine(text)
			if err != nil {
				t.Fatalf("%s: %q: %v", name, tail(string(text), 500), err)
			}
			l.file = name
			lines = append(lines, l)
		}
	}
	return lines
}

func parseLine(text []byte) (line, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var l line
	if err := dec.Decode(&l.record); err != nil {
		return l, err
	}
	when, _ := l.record["time"].(string)
	tag, ok := l.record["tag"].(string)
	if !ok {
		return l, errors.New("no tag")
	}
	l.tag = tag
	var err error
	l.time, err = time.Parse(time.RFC3339Nano, when)
	delete(l.record, "time")
	delete(l.record, "tag")
	return l, err
}

// A counter counts the lines of the files below a folder while they grow; it reads each byte once.
type counter struct {
	dir   string
	seen  map[string]int64 // bytes read so far
	lines int
}

func newCounter(dir string) *counter { return &counter{dir: dir, seen: map[string]int64{}} }

func (c *counter) count(t testing.TB) int {
	t.Helper()
	buf := make([]byte, 64<<10)
	for _, name := range jsonlFiles(t, c.dir) {
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

// waitLines waits until the files below dir have n lines.
func waitLines(t testing.TB, dir string, n int) {
	t.Helper()
	c := newCounter(dir)
	have, moved := 0, time.Now()
	eventually(t, "the output stops growing", func() bool {
		if now := c.count(t); now != have {
			have, moved = now, time.Now()
		}
		return have >= n || time.Since(moved) > patience/2
	})
	if have < n {
		t.Fatalf("%d lines in %s, want %d", have, dir, n)
	}
}

// names returns how often each event's name is in the lines.
func names(lines []line) map[string]int {
	m := make(map[string]int, len(lines))
	for _, l := range lines {
		m[l.name()]++
	}
	return m
}

// wantNames checks that each wanted name is in the lines as often as in want, and no other is.
func wantNames(t testing.TB, lines []line, want ...string) {
	t.Helper()
	have := names(lines)
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

// number is the number of a client's event, -1 of any other.
func (l line) number() int {
	text, _ := l.record["n"].(json.Number)
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return -1
	}
	return n
}

// wantOrder checks that the events of each sender, named sender-number, are in each file in the
// order of their numbers.
func wantOrder(t testing.TB, lines []line) {
	t.Helper()
	last := map[string]int{}
	for _, l := range lines {
		sender, text, _ := strings.Cut(l.name(), "-")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("event %q: %v", l.name(), err)
		}
		key := filepath.Base(l.file) + " " + sender
		if before, ok := last[key]; ok && n <= before {
			t.Fatalf("%s: event %d stands after %d", key, n, before)
		}
		last[key] = n
	}
}
