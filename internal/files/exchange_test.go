// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestKillMoved has another program rename the file, before any line, and kills the process at any
// tick after that or before, and again before the first line of the second process: each line is
// there once.
func TestKillMoved(t *testing.T) {
	for _, o := range []Options{{}, {Buffer: 30}, {NewFiles: 1}, {Rotation: Rotation{Size: 200}}} {
		for at := 1; at < 12; at += 2 {
			for ticks := 0; ; ticks += 3 {
				w := newWorld(t, "all.jsonl", 1, 12, Options{NewFiles: 1})
				w.o = o
				path := filepath.Join(w.dir, "all.jsonl")
				moved := 0
				w.before = func(i int) {
					if i == at || i == at+3 {
						moved++
						_ = os.Rename(path, fmt.Sprintf("%s.%d", path, moved)) // it may not be there yet
					}
				}
				done := w.run(ticks)
				first := at%4 == 1
				w.before = func(int) {
					if first {
						_ = os.Rename(path, path+".9")
					}
					first = false
				}
				if !done && !w.run(-1) {
					t.Fatal("the second process did not finish")
				}
				w.checkOnce(fmt.Sprintf("%+v: moved before line %d, killed at %d", o.Rotation, at, ticks), 1)
				os.RemoveAll(w.dir)
				if done {
					break
				}
			}
		}
	}
}

// TestKillCopied has another program copy the file and cut it to nothing, and kills the process at
// any tick after that or before: each line is there once. That holds for what was copied when some
// line of the file was committed.
func TestKillCopied(t *testing.T) {
	for _, o := range []Options{{}, {Buffer: 30}, {NewFiles: 1}, {NoSync: true}} {
		for at := 1; at < 12; at++ {
			for ticks := 0; ; ticks += 3 {
				w := newWorld(t, "all.jsonl", 1, 12, Options{NewFiles: 1})
				w.o = o
				path := filepath.Join(w.dir, "all.jsonl")
				copied := 0
				copyAt := func(at int) func(i int) {
					return func(i int) {
						if i == at {
							copied++
							must(t, os.WriteFile(fmt.Sprintf("%s.%d", path, copied), read(t, path), 0o600))
							must(t, os.Truncate(path, 0))
						}
					}
				}
				w.before = copyAt(at)
				done := w.run(ticks)
				committed := w.position
				w.before = nil
				if copied > 0 && at%2 == 0 { // and then it is renamed
					_ = os.Rename(path, path+".9")
				}
				if copied == 0 { // while its lines are looked for
					w.before = copyAt(committed + at%4)
				}
				if !done && !w.run(-1) {
					t.Fatal("the second process did not finish")
				}
				seed := fmt.Sprintf("%+v: copied before line %d, killed at %d", o, at, ticks)
				if committed > 0 {
					w.checkOnce(seed, 1)
				}
				os.RemoveAll(w.dir)
				if done {
					break
				}
			}
		}
	}
}

// TestKillExchanged kills two processes and lets each go on where the other wrote, under other
// paths: each line of both is there once.
func TestKillExchanged(t *testing.T) {
	for _, tt := range []struct {
		patterns [2]string
		rotation Rotation
	}{
		{patterns: [2]string{"x.jsonl", "y.jsonl"}},
		{patterns: [2]string{"{tag}/{hour}", "y-{tag}-{hour}.jsonl"}},
		{patterns: [2]string{"x.jsonl", "y.jsonl"}, rotation: Rotation{Size: 60, Compress: "gzip"}},
	} {
		patterns := tt.patterns
		for ticks := 0; ; ticks += 3 {
			a := newWorld(t, patterns[0], 2, 16, Options{NewFiles: 100, Rotation: tt.rotation})
			b := newWorld(t, patterns[1], 2, 16, Options{NewFiles: 100, Rotation: tt.rotation})
			b.dir = a.dir
			// The part of a line would stay as it is: the Set that has the file now ends it.
			a.whole, b.whole = true, true
			done := a.run(ticks)
			if !b.run(ticks) {
				done = false
			}
			a.pattern, b.pattern = b.pattern, a.pattern
			if !done { // a collector opens all outputs before one of them runs
				var both, wg sync.WaitGroup
				both.Add(2)
				for _, w := range []*world{a, b} {
					w.opened = func() { both.Done(); both.Wait() }
					wg.Go(func() {
						if !w.run(-1) {
							t.Error("the second process did not finish")
						}
					})
				}
				wg.Wait()
			}
			// Two that share a directory may hinder each other for a moment: files may be larger.
			a.o.Rotation = Rotation{}
			a.checkOnce(fmt.Sprintf("%v, killed at %d", patterns, ticks), 2)
			os.RemoveAll(a.dir)
			if done {
				break
			}
		}
	}
}

// TestKillChangedBack kills a process, one that goes on under another path, and one that has the
// first path again: each line is there once.
func TestKillChangedBack(t *testing.T) {
	for _, o := range []Options{{}, {Buffer: 30}, {Rotation: Rotation{Size: 60}}} {
		for ticks, done := 3, false; !done; ticks += 5 {
			for again, finished := 2, false; !finished; again += 3 {
				w := newWorld(t, "{tag}.jsonl", 2, 16, Options{NewFiles: 100})
				w.o, w.whole = o, true
				done = w.run(ticks)
				w.pattern = "y-{tag}.jsonl"
				finished = done || w.run(again)
				w.pattern = "{tag}.jsonl"
				if !finished && !w.run(-1) {
					t.Fatal("the third process did not finish")
				}
				w.checkOnce(fmt.Sprintf("%+v: killed at %d and %d", o.Rotation, ticks, again), 1)
				os.RemoveAll(w.dir)
			}
		}
	}
}

// TestLimitLasts: what others append to a file that lines are only looked for in is not taken for
// those lines, by a later process neither.
func TestLimitLasts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	var state []byte
	process := func(commit bool, name string, lines ...string) {
		o := &Options{Record: func(b []byte) error { state = b; return nil }}
		s, err := Open(filepath.Join(dir, name), state, o)
		must(t, err)
		for _, line := range lines {
			must(t, extend(s, "", 0, line+"\n"))
		}
		must(t, s.Write())
		if commit { // else it is killed before
			state = s.State()
		}
		must(t, s.Close())
	}
	others := func(line string) { // another output has the path now
		must(t, os.WriteFile(path, append(read(t, path), line+"\n"...), 0o600))
	}
	process(false, "x.jsonl", "1", "2")
	process(true, "y.jsonl", "1") // it looks for 2 still
	others("3")
	process(false, "y.jsonl", "2", "3") // it has found all
	others("4")
	process(false, "y.jsonl", "2", "3", "4")
	if x, y := string(read(t, path)), string(read(t, filepath.Join(dir, "y.jsonl"))); x != "1\n2\n3\n4\n" ||
		y != "3\n4\n" {
		t.Errorf("%q and %q", x, y)
	}
}

// checkOnce wants every line in all files together so many times.
func (w *world) checkOnce(seed string, times int) {
	w.t.Helper()
	have := map[string]int{}
	for _, lines := range w.content() {
		for _, line := range lines {
			have[line]++
		}
	}
	for _, e := range w.lines {
		if have[e.line] != times {
			w.t.Fatalf("%s: %q is there %d times, want %d: %v", seed, e.line, have[e.line], times, w.content())
		}
		delete(have, e.line)
	}
	if len(have) > 0 {
		w.t.Fatalf("%s: nobody wrote %v", seed, have)
	}
}
