// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What somebody else may do to the file while no process of ours runs.
var foreignWriters = []struct {
	name string
	do   func(t *testing.T, path string)
	once bool // no line is in the file twice after it
	cuts bool // it takes away lines of ours
}{
	{name: "nothing", do: func(*testing.T, string) {}, once: true},
	{name: "a line", do: func(t *testing.T, path string) { appendTo(t, path, "another program's line\n") }, once: true},
	{name: "a part of a line", do: func(t *testing.T, path string) { appendTo(t, path, "another's") }, once: true},
	{name: "a newline", do: func(t *testing.T, path string) { appendTo(t, path, "\n") }, once: true},
	{name: "many lines", do: func(t *testing.T,
		path string,
	) {
		appendTo(t, path, strings.Repeat("{foreign}\n", 10000))
	}, once: true},
	{
		name: "the start of a line of ours", do: func(t *testing.T, path string) { appendTo(t, path, "{t0 ") },
		once: true,
	},
	{name: "something in between", do: func(t *testing.T, path string) {
		b := read(t, path)
		i := len(b) / 2
		b = append(b[:i:i], append([]byte("foreign"), b[i:]...)...)
		overwrite(t, path, b)
	}, cuts: true},
	{name: "moved away", do: func(t *testing.T, path string) { must(t, os.Rename(path, path+".1")) }},
	{name: "moved away, another made", do: func(t *testing.T, path string) {
		must(t, os.Rename(path, path+".1"))
		appendTo(t, path, "another program's file, of whatever length\n")
	}},
	{name: "replaced by a copy", do: func(t *testing.T, path string) {
		b := read(t, path)
		must(t, os.Rename(path, path+".1"))
		appendTo(t, path, string(b))
	}},
	{name: "removed", do: func(t *testing.T, path string) { must(t, os.Remove(path)) }, cuts: true},
	{name: "cut to nothing", do: func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) }, cuts: true},
	{name: "cut within a line", do: func(t *testing.T,
		path string,
	) {
		must(t, os.Truncate(path, int64(len(read(t, path))*2/3)))
	}, cuts: true},
	{name: "cut and grown", do: func(t *testing.T, path string) {
		n := len(read(t, path))
		must(t, os.Truncate(path, 0))
		appendTo(t, path, strings.Repeat("-", n))
	}, cuts: true},
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	must(t, os.WriteFile(path, b, 0o644))
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	must(t, f.Close())
}

// TestForeignWriters kills a process at any tick, lets a foreign writer at its file, and lets the
// next process finish: all bytes that it left are there as it left them, and every line that he did
// not take away.
func TestForeignWriters(t *testing.T) {
	for _, foreign := range foreignWriters {
		for kind, pattern := range map[string]string{"a file": "all.jsonl", "a file each": "all.{pid}.jsonl"} {
			t.Run(kind+"/"+foreign.name, func(t *testing.T) {
				t.Parallel()
				for ticks := 0; ; ticks += 5 {
					w := newWorld(t, pattern, 1, 20, Options{})
					for i := range w.lines { // all different, so that they can be counted
						w.lines[i].line = fmt.Sprintf("{t0 %d}%s\n", i, strings.Repeat("x", i%4))
					}
					done := w.run(ticks)
					before := map[string][]byte{}
					paths, err := filepath.Glob(filepath.Join(w.dir, "*.jsonl"))
					must(t, err)
					for _, path := range paths {
						foreign.do(t, path)
						if _, err := os.Stat(path); err == nil {
							before[path] = read(t, path)
						}
					}
					committed := w.position
					if !done && !w.run(-1) {
						t.Fatal("the second process did not finish")
					}
					for path, b := range before {
						if now := read(t, path); !bytes.HasPrefix(now, b) {
							t.Fatalf("killed at %d: %s: harmed\n was %q\n is %q", ticks, path, b, now)
						}
					}
					var all []byte
					paths, err = filepath.Glob(filepath.Join(w.dir, "*"))
					must(t, err)
					for _, path := range paths {
						all = append(append(all, '\n'), read(t, path)...)
					}
					for i, e := range w.lines {
						n := bytes.Count(all, []byte("\n"+e.line)) // whole lines
						switch {
						case done && foreign.cuts, foreign.cuts && i < committed:
						case n == 0:
							t.Fatalf("killed at %d, committed %d: line %d is lost\n%q", ticks, committed, i, all)
						case n > 1 && foreign.once && !done:
							t.Fatalf("killed at %d, committed %d: line %d is there %d times\n%q", ticks, committed, i,
								n, all)
						}
					}
					must(t, os.RemoveAll(w.dir))
					if done {
						return
					}
				}
			})
		}
	}
}
