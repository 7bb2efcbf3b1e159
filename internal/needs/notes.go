// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A skip is a test and what it lacked.
type skip struct{ Test, Why string }

// notes are what a package skipped. They are kept in a file, for its result may come from the go
// command's cache the next time.
type notes struct {
	Package string
	Dir     string
	Way     string // see way
	Skips   []skip
}

var noted struct {
	sync.Mutex
	skips []skip
}

func note(test, why string) {
	noted.Lock()
	defer noted.Unlock()
	noted.skips = append(noted.skips, skip{test, why})
}

func skips() []skip {
	noted.Lock()
	defer noted.Unlock()
	return slices.Clone(noted.skips)
}

// way says how tests are run: what one way skips, another does not.
func way() string {
	race := false
	if info, ok := debug.ReadBuildInfo(); ok {
		race = slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	}
	return fmt.Sprintf("%s race=%t short=%t long=%t CI=%s PATH=%s", runtime.GOARCH, race, testing.Short(), Long(),
		os.Getenv("CI"), os.Getenv("PATH"))
}

// whole tells whether all tests of a package are run.
func whole() bool {
	for _, name := range []string{"run", "skip", "list", "fuzz"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

func notesDir() (string, error) {
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "skipped")
	return dir, os.MkdirAll(dir, 0o700)
}

// write writes the notes of this package, which lies in the working directory.
func write(name string) error {
	dir, err := notesDir()
	if err != nil {
		return err
	}
	n := notes{Package: name, Way: way(), Skips: skips()}
	if n.Dir, err = os.Getwd(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(n, "", "\t")
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(n.Dir + "\n" + n.Way))
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%x.json", hash[:8])), b, 0o600)
}

// kept reads the notes of all packages below root that were run this way, and drops those of
// folders that are gone.
func kept(root string) (all []notes, err error) {
	dir, err := notesDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		var n notes
		if err != nil || json.Unmarshal(b, &n) != nil {
			continue
		}
		if _, err := os.Stat(n.Dir); err != nil {
			_ = os.Remove(file) //nolint:errcheck // the next one tries again
			continue
		}
		if below, err := filepath.Rel(root, n.Dir); err == nil && filepath.IsLocal(below) && n.Way == way() {
			all = append(all, n)
		}
	}
	return all, nil
}

// group is the text about skipped tests: those of a package that lacked the same in one line. It is
// empty where there are none.
func group(all []notes) string {
	type reason struct{ name, why string }
	tests := map[reason][]string{}
	total := 0
	for _, n := range all {
		for _, s := range n.Skips {
			r := reason{n.Package, s.Why}
			tests[r] = append(tests[r], s.Test)
			total++
		}
	}
	if total == 0 {
		return ""
	}
	var lines []string
	for r, names := range tests {
		slices.Sort(names)
		names = slices.Compact(names)
		text := strings.Join(names[:min(3, len(names))], ", ")
		if more := len(names) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		why := []rune(strings.Join(strings.Fields(r.why), " "))
		if len(why) > 300 {
			why = append(why[:300], '…')
		}
		lines = append(lines, fmt.Sprintf("  %s: %s: %s\n", r.name, text, string(why)))
	}
	slices.Sort(lines)
	verb := "tests were"
	if total == 1 {
		verb = "test was"
	}
	return fmt.Sprintf("%d %s skipped:\n%s", total, verb, strings.Join(lines, ""))
}

// Summary is all that the last package of the workspace does, whose folder is two below the top: it
// waits for the go command's other processes and tells what all packages skipped, those too whose
// results are cached. It fails nothing, and ends before the go command loses its patience.
func Summary() {
	flag.Parse()
	out := goStderr()
	if out == nil || !whole() || !summarised() {
		return
	}
	defer out.Close()
	patience := 9 * time.Minute
	if f := flag.Lookup("test.timeout"); f != nil {
		if d, err := time.ParseDuration(f.Value.String()); err == nil && d > 0 {
			patience = d * 9 / 10
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for quiet := 0; quiet < 5 && time.Now().Before(deadline); { // between two processes there is a moment without one
		<-tick.C
		if quiet++; siblings() > 0 {
			quiet = 0
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return
	}
	all, err := kept(filepath.Dir(filepath.Dir(here)))
	if err != nil {
		return
	}
	if text := group(all); text != "" {
		say(out, text)
	} else {
		say(out, "no test was skipped\n")
	}
}

// say writes, and gives up when nobody reads: a test waits for no terminal.
func say(out io.Writer, text string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(out, text) //nolint:errcheck // there is nobody else to tell
	}()
	select {
	case <-written:
	case <-time.After(time.Second):
	}
}
