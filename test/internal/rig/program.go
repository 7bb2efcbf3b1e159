// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// A Program is a command in Go, built at most once a run.
type Program struct {
	Dir  string // of its module
	Name string // of its folder there
	race bool
	once sync.Once
	path string
	err  error
}

// top is the repository's folder, as seen from that of any package of tests.
var top = filepath.Join("..", "..")

var (
	// Lean never has the race detector, which takes several times the memory.
	Lean = &Program{Dir: filepath.Join(top, "cmd"), Name: "spillway"}
	// Checked has the race detector if the tests have it, or the environment wants it.
	Checked = checked()
)

// checked is Lean where there is no race detector: if two built the same file, one would write it
// while the other's is run.
func checked() *Program {
	if !RaceDetector && os.Getenv("SPILLWAY_RACE") != "true" {
		return Lean
	}
	return &Program{Dir: Lean.Dir, Name: Lean.Name, race: true}
}

// binaries is the folder that the binaries are built into.
var binaries string

// child is what this binary does instead of testing when the environment says so; nil where no test
// needs a process of its own.
var child func(order string) int

const childEnv = "SPILLWAY_TEST_CHILD"

// Begin makes ready what the tests of a package need, and [End] takes it away. Each package that
// uses this one has them in its TestMain:
//
//	rig.Begin()
//	os.Exit(rig.End(needs.Main(m)))
//
// In a process that a test has started, see [StartChild], Begin does not return.
func Begin() {
	if order := os.Getenv(childEnv); order != "" && child != nil {
		os.Exit(child(order)) //nolint:forbidigo // TestMain's first call
	}
	if err := begin(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // TestMain's first call
	}
}

func begin() (err error) {
	if binaries, err = os.MkdirTemp("", "spillway-test-"); err != nil {
		return err
	}
	if err := widen(); err != nil {
		return err
	}
	// The Go client complains there each time that a connection breaks: megabytes in a log of CI,
	// before what matters. What ends this process is told by the runtime, which does not look here.
	said = os.Stderr
	os.Stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	return err
}

// said is the standard error that the process was started with.
var said *os.File

// End returns the exit code.
func End(code int) int {
	os.Stderr = said
	if err := os.RemoveAll(binaries); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// widen has more tests run at once than there are cores, unless the command line says how many:
// most of them wait for other processes.
func widen() error {
	const atOnce = 8
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said || runtime.GOMAXPROCS(0) >= atOnce {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(atOnce))
}

// Build returns the path of the binary.
func (b *Program) Build(t testing.TB) string {
	t.Helper()
	path, err := b.Make()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Make is Build where there is no test yet. What another package's tests built lies in the cache:
// the go command sees whether that is what it would build, and links nothing then.
func (b *Program) Make() (string, error) {
	b.once.Do(func() {
		name := fmt.Sprintf("%s-%t", filepath.Base(b.Name), b.race)
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		b.path = filepath.Join(binaries, name)
		cache, err := needs.Cache()
		if err != nil {
			b.err = err
			return
		}
		cached := filepath.Join(cache, name)
		_ = copyProgram(cached, b.path) // if there is one
		before, _ := os.Stat(b.path)
		args := []string{"build", "-o", b.path}
		if b.race {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "./"+b.Name)...)
		cmd.Dir = b.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build %s: %w\n%s", b.Name, err, out)
			return
		}
		after, err := os.Stat(b.path)
		if err == nil && (before == nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime())) {
			err = copyProgram(b.path, cached)
		}
		b.err = err
	})
	return b.path, b.err
}

// copyProgram copies a binary, of which nobody sees a part.
func copyProgram(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(0o700), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
