// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// A place is where an event stands: in which file, in which line.
type place struct {
	file string
	line int
}

// A standing is one line of the files: an event of an output at a place.
type standing struct {
	place
	output, name string
	sender       string // and n are the parts of name
	n            int
}

// check wants each event in the files of each output once.
func (w *rotated) check(sent [][]string) {
	t := w.t
	outputs := []string{"one", "two"}
	if !w.own {
		outputs = []string{"tag"}
	}
	found := map[string]map[string][]place{}
	for _, o := range outputs {
		found[o] = map[string][]place{}
	}
	var stands []standing
	torn := 0
	files := append(rig.LineFiles(t, w.dir), rig.LineFiles(t, w.away)...)
	for _, file := range files {
		packed := slices.Contains(files, file+".gz") || slices.Contains(files, file+".zst")
		if packed || strings.HasSuffix(file, ".gz.tmp") {
			continue // killed before one of the two was removed
		}
		for i, text := range bytes.SplitAfter(w.read(file), []byte("\n")) {
			var fields map[string]any
			err := json.Unmarshal(text, &fields)
			switch {
			case len(text) == 0:
				continue
			case err != nil || text[len(text)-1] != '\n':
				torn++
				t.Logf("%s: line %d: a part: %q", file, i, rig.Tail(string(text), 200))
				continue
			}
			output := outputs[0]
			if _, ok := fields[output]; !ok {
				output = outputs[len(outputs)-1]
			}
			name, _ := fields["name"].(string)
			found[output][name] = append(found[output][name], place{file, i})
			sender, text, _ := strings.Cut(name, "-")
			n, err := strconv.Atoi(text)
			rig.Must(t, err)
			stands = append(stands, standing{place{file, i}, output, name, sender, n})
		}
	}
	times := 1
	if !w.own {
		times = 2
	}
	if w.own { // what is there twice, as that admits, may be out of order
		last := map[string]int{}
		for _, x := range stands {
			key := fmt.Sprint(x.file, ": output ", x.output, ": ", x.sender)
			if len(found[x.output][fmt.Sprint(x.sender, "-", x.n)]) > 1 {
				continue
			}
			if before, ok := last[key]; ok && x.n <= before {
				t.Errorf("%s-%d stands after %d", key, x.n, before)
			}
			last[key] = x.n
		}
	}
	behind := w.behindGaps(stands, func(x *standing) bool { return len(found[x.output][x.name]) > times })
	events, twice, lost := 0, 0, 0
	for _, output := range outputs {
		all := found[output]
		for _, names := range sent {
			events += len(names)
			for _, name := range names {
				at := all[name]
				delete(all, name)
				if len(at) < times {
					lost++
					if lost < 10 {
						t.Errorf("output %s: %s is there %d times, want %d: %v", output, name, len(at), times, at)
					}
				}
				if len(at) <= times {
					continue
				}
				twice += len(at) - times
				if !w.excused(at) && !slices.ContainsFunc(at, func(p place) bool { return behind[p] }) && twice < 5 {
					t.Errorf("output %s: %s is there %d times, want %d: %v", output, name, len(at), times, at)
				}
			}
		}
		for name, at := range all {
			t.Errorf("output %s: nobody sent %s, in %v", output, name, at)
		}
	}
	if torn > w.tears {
		t.Errorf("%d parts of lines, with %d changes that may leave one", torn, w.tears)
	}
	if t.Failed() {
		t.Log(strings.Join(w.story, "\n"))
	}
	rig.Figure(t, "%v, %d events, %d lost, %d twice, %d parts of lines", w.done, events, lost, twice, torn)
}

// excused says whether docs/losses.md admits that an event stands at more than one place: one of
// them is a file that was taken away, or a copy of one without a committed line, or the output's
// path was changed to one with other placeholders. How few that are is a figure; TestKillCopied in
// package files is exact.
func (w *rotated) excused(at []place) bool {
	families := map[string]bool{}
	for _, p := range at {
		families[w.family(p.file)] = true
		if w.isAway(p.file) {
			return true
		}
	}
	return w.otherwise > 0 && len(families) > 1
}

// behindGaps returns the places of what came twice because what stands before it did. Lines of a
// file that was taken away, or copied without a committed line, come again, as docs/losses.md
// admits. They are not what the files begun after it begin with, so that no more is looked for in
// those. The files of an output are put in the order in which they were begun.
func (w *rotated) behindGaps(stands []standing, twice func(*standing) bool) (behind map[place]bool) {
	changed := map[string]time.Time{} // of each file, when it got its last line
	chains := map[string][]*standing{}
	for i := range stands {
		x := &stands[i]
		if _, ok := changed[x.file]; !ok {
			info, err := os.Stat(x.file)
			rig.Must(w.t, err)
			changed[x.file] = info.ModTime()
		}
		key := x.output
		if !strings.ContainsAny(w.family(x.file), "gh") { // those have one file for both tags
			number, err := strconv.Atoi(x.sender[1:])
			rig.Must(w.t, err)
			key += fmt.Sprint(" ", number%2)
		}
		chains[key] = append(chains[key], x)
	}
	behind = map[place]bool{}
	for _, chain := range chains {
		slices.SortStableFunc(chain, func(a, b *standing) int {
			return cmp.Or(changed[a.file].Compare(changed[b.file]), cmp.Compare(a.file, b.file),
				cmp.Compare(a.line, b.line))
		})
		gap := false // the line before came again, for an admitted reason
		var run *standing
		for _, x := range chain {
			if again := twice(x); again != (run != nil) || run != nil && run.file != x.file {
				run = nil
				if again {
					run = x
				}
				w.story = append(w.story, fmt.Sprintf("  twice: %t from %s %s %v, a file of %s",
					again, x.output, x.name, x.place, changed[x.file].UTC().Format("04:05.000")))
			}
			switch {
			case !twice(x):
				gap = false
			case w.isAway(x.file):
				gap = true
			case gap:
				behind[x.place] = true
			}
		}
	}
	return behind
}

// family is the letter of the output's path that a file belongs to.
func (w *rotated) family(file string) string {
	for _, dir := range []string{w.dir, w.away} {
		if name, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(name) {
			return name[:1]
		}
	}
	w.t.Fatalf("%s is no output's file", file)
	return ""
}

// isAway reports whether a file was taken away or is a copy.
func (w *rotated) isAway(file string) bool { return w.copies[file] || filepath.Dir(file) == w.away }

// read reads a file, compressed or not.
func (w *rotated) read(file string) []byte {
	b, err := os.ReadFile(file)
	rig.Must(w.t, err)
	var z io.Reader
	switch filepath.Ext(file) {
	case ".gz":
		z, err = gzip.NewReader(bytes.NewReader(b))
	case ".zst":
		z, err = zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
	default:
		return b
	}
	rig.Must(w.t, err)
	b, err = io.ReadAll(z)
	rig.Must(w.t, err)
	return b
}
