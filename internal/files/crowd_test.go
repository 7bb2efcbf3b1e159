// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrowd makes exactly as many new files a minute as it may. What is there already gets its own
// lines, and so does everything when the minute is over.
func TestCrowd(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "there.jsonl"), nil, 0o600))
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var recorded []byte
		s := openSet(t, filepath.Join(dir, "{tag}.jsonl"), nil, &Options{
			NewFiles: 3, Record: func(b []byte) error { recorded = b; return nil },
			Report: func(err error) { told = append(told, err.Error()) },
		})
		s.Checkpoints(true)
		count := func(want int) {
			t.Helper()
			_, err := s.Sync()
			must(t, err)
			all, err := os.ReadDir(dir)
			must(t, err)
			if len(all) != want {
				t.Errorf("%d files, want %d: %v", len(all), want, all)
			}
		}
		for i := range 3 {
			add(t, s, fmt.Sprint("tag", i), "1\n")
		}
		if err := extend(s, "tag3", 0, "2\n"); !errors.Is(err, ErrCrowded) {
			t.Fatalf("one too many: %v", err)
		}
		add(t, s, "there", "1\n")
		must(t, s.Checkpoint(Point{"here", 4}))
		for i := range 100 {
			add(t, s, fmt.Sprint("tag", i), "2\n")
		}
		add(t, s, "there", "2\n")
		count(5) // the three, there, other
		if s.Rest() != 97 || len(told) != 1 || !strings.Contains(told[0], filepath.Join(dir, "other.jsonl")) {
			t.Errorf("%d events for the rest, told %q", s.Rest(), told)
		}
		if got, err := parseState(recorded); err != nil || !got.closed || got.point != (Point{"here", 4}) {
			t.Errorf("recorded %+v, %v", got, err)
		}

		<-time.After(time.Minute)
		add(t, s, "tag3", "3\n") // behind a state that says no new files
		count(5)
		for i := range 3 {
			add(t, s, fmt.Sprint("later", i), "3\n")
		}
		count(8)
		add(t, s, "other", "4\n") // a tag that shares the file
		count(8)
		if s.Rest() != 98 {
			t.Errorf("%d events for the rest", s.Rest())
		}
	})
	for name, want := range map[string]string{
		"there": "1\n2\n", "tag2": "1\n2\n", "later2": "3\n", "other": strings.Repeat("2\n", 97) + "3\n4\n",
	} {
		if got := string(read(t, filepath.Join(dir, name+".jsonl"))); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestCheckpointFails: nothing is written until the state of a Checkpoint is durable.
func TestCheckpointFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	var recorded []byte
	var fails error
	s := openSet(t, path, nil, &Options{Record: func(b []byte) error {
		if fails == nil {
			recorded = b
		}
		return fails
	}})
	add(t, s, "", "1\n")
	must(t, s.Write())
	fails = errors.New("no disk")
	if err := s.Checkpoint(Point{"here", 1}); !errors.Is(err, fails) {
		t.Fatal(err)
	}
	add(t, s, "", "2\n")
	if err := s.Write(); !errors.Is(err, fails) || string(read(t, path)) != "1\n" {
		t.Fatalf("%v: %q", err, read(t, path))
	}
	fails = nil
	must(t, s.Write())
	got, err := parseState(recorded)
	must(t, err)
	if got.point != (Point{"here", 1}) || got.entries[0].length != 2 || string(read(t, path)) != "1\n2\n" {
		t.Errorf("recorded %+v, the file has %q", got, read(t, path))
	}
}
