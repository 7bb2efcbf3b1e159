// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// Files that others touch: not one foreign byte is lost, and no event.

const foreign = "what another program wrote\nin two lines\n"

// TestForeignWriterBetween lets another program write to the output file after a crash, before the
// start.
func TestForeignWriterBetween(t *testing.T) {
	t.Parallel()
	appendTo := func(text string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
			rig.Must(t, err)
			_, err = f.WriteString(text)
			rig.Must(t, err)
			rig.Must(t, f.Close())
		}
	}
	rename := func(t *testing.T, file string) { rig.Must(t, os.Rename(file, file+".1")) }
	for _, tt := range []struct {
		name  string
		act   func(t *testing.T, file string)
		lost  bool // the other program took events away itself
		bytes string
	}{
		{"appends", appendTo(foreign), false, foreign},
		{"appends half a line", appendTo("half"), false, "half"},
		{
			"appends half a line that looks like ours",
			appendTo(`{"time":"2026-11-21T02:03:04.123456789Z","tag":"a","name":"fo`), false, `"name":"fo`,
		},
		{"rotates", rename, false, ""},
		{"rotates and writes a new file", func(t *testing.T, file string) {
			rename(t, file)
			appendTo(foreign)(t, file)
		}, false, foreign},
		{"replaces by a longer file", func(t *testing.T, file string) {
			rig.Must(t, os.WriteFile(file+".new", bytes.Repeat([]byte(foreign), 5000), 0o600))
			rig.Must(t, os.Rename(file+".new", file))
		}, true, strings.Repeat(foreign, 5000)},
		{"overwrites in place", func(t *testing.T, file string) {
			rig.Must(t, os.WriteFile(file, bytes.Repeat([]byte(foreign), 5000), 0o600))
		}, true, strings.Repeat(foreign, 5000)},
		{"truncates", func(t *testing.T, file string) { rig.Must(t, os.Truncate(file, 10)) }, true, ""},
		{"removes", func(t *testing.T, file string) { rig.Must(t, os.Remove(file)) }, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, out := rig.NewSetup(t)
			file := filepath.Join(out, "a.jsonl")
			c := rig.StartCollector(t, s)
			l := c.Lane()
			var names []string
			sendNamed(l, &names, 200)
			rig.WaitLines(t, out, 100) // killed while it still writes, or not
			c.Kill()
			before, err := os.ReadFile(file)
			rig.Must(t, err)

			tt.act(t, file)
			for round := range 2 {
				c = rig.StartCollector(t, s)
				l = c.Lane()
				sendNamed(l, &names, 100)
				rig.Eventually(t, "the last event is in the output", func() bool {
					b, err := os.ReadFile(file)
					return err == nil && bytes.Contains(b, []byte(`"`+names[len(names)-1]+`"`))
				})
				if round == 0 {
					// What is written after foreign bytes can only be recognised once it is
					// committed.
					rig.Eventually(t, "all is committed", func() bool { return c.Behind(s) == 0 })
					c.Kill()
				} else {
					c.Stop()
				}
			}
			all, own := readTogether(t, out)
			if !strings.Contains(all, tt.bytes) {
				t.Errorf("the foreign bytes are gone")
			}
			since := 0
			if tt.lost {
				since = 200
			} else if !strings.Contains(all, string(bytes.TrimSuffix(before, []byte("\n")))) {
				t.Errorf("what was in the file before is not in it, as one piece, any more")
			}
			for i, name := range names[since:] {
				n := own[name]
				if n == 0 {
					t.Errorf("%s is not in the output as a line of its own", name)
				}
				// Events that were written but not yet committed when the collector died, and that
				// the other program made unrecognisable, may be there again.
				if n > 1 && since+i >= 200 {
					t.Errorf("%s is in the output %d times", name, n)
				}
			}
			twice := 0
			for _, n := range own {
				twice += n - 1
			}
			t.Logf("%d events, %d of them twice", len(names), twice)
		})
	}
}

// TestForeignWriterMeanwhile lets another program write to the output file while the collector
// runs.
func TestForeignWriterMeanwhile(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	file := filepath.Join(out, "a.jsonl")
	c := rig.StartCollector(t, s)
	l := c.Lane()
	var names []string
	inFile := func() {
		t.Helper()
		rig.Eventually(t, "the last event is in the file of that name", func() bool {
			b, err := os.ReadFile(file)
			return err == nil && bytes.Contains(b, []byte(`"`+names[len(names)-1]+`"`))
		})
	}
	sendNamed(l, &names, 50)
	inFile()
	rig.Must(t, os.Rename(file, file+".1"))
	// The next events may still go into the renamed file; sooner or later a new one is opened.
	rig.Eventually(t, "a new file is opened after a rename", func() bool {
		sendNamed(l, &names, 1)
		_, err := os.Stat(file)
		return err == nil
	})
	sendNamed(l, &names, 50)
	inFile()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	rig.Must(t, err)
	_, err = f.WriteString(foreign)
	rig.Must(t, err)
	rig.Must(t, f.Close())
	sendNamed(l, &names, 50)
	inFile()
	rig.Must(t, os.Rename(file, file+".2"))
	rig.Must(t, os.WriteFile(file, []byte(foreign), 0o600))
	rig.Eventually(t, "a replaced file is noticed", func() bool {
		sendNamed(l, &names, 1)
		b, err := os.ReadFile(file)
		return err == nil && len(b) > len(foreign)
	})
	c.Stop()
	all, own := readTogether(t, out)
	if n := strings.Count(all, foreign); n != 2 {
		t.Errorf("the foreign bytes are there %d times, want 2", n)
	}
	for _, name := range names {
		if own[name] != 1 {
			t.Errorf("%s is in the output %d times", name, own[name])
		}
	}
}

// readTogether reads all files below dir: their text, and how often each event's name is in them as
// a line of its own.
func readTogether(t testing.TB, dir string) (all string, own map[string]int) {
	t.Helper()
	own = map[string]int{}
	for _, name := range rig.LineFiles(t, dir) {
		b, err := os.ReadFile(name)
		rig.Must(t, err)
		all += string(b)
		for text := range bytes.Lines(b) {
			if l, err := rig.ParseLine(text); err == nil {
				own[l.Name()]++
			}
		}
	}
	return all, own
}

// sendNamed sends n more events under the tag "a", each acked, and notes their names.
func sendNamed(l *rig.Lane, names *[]string, n int) {
	for range n {
		name := fmt.Sprintf("event %d", len(*names))
		*names = append(*names, name)
		id := rig.NewID()
		l.Send(rig.Packed("a", id, rig.Named(name).Append(nil)), id)
	}
}
