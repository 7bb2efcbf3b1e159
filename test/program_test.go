// SPDX-License-Identifier: Apache-2.0

package test

import (
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

// A program is a command in Go, built at most once a run.
type program struct {
	dir  string // of its module
	name string // of its folder there
	race bool
	once sync.Once
	path string
	err  error
}

var (
	// As the tests are built, or beside tests without.
	checked = &program{dir: filepath.Join("..", "cmd"), name: "spillway", race: raceDetector ||
		os.Getenv("SPILLWAY_RACE") == "true"}
	// Never with the race detector, which takes several times the memory.
	lean = &program{dir: filepath.Join("..", "cmd"), name: "spillway"}
)

// binaries is the folder that the binaries are built into.
var binaries string

// child is what this binary does instead of testing when the environment says so; nil where no test
// needs a process of its own.
var child func(order string) int

const childEnv = "SPILLWAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if order := os.Getenv(childEnv); order != "" && child != nil {
		os.Exit(child(order))
	}
	var err error
	binaries, err = os.MkdirTemp("", "spillway-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := widen(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The Go client complains there each time that a connection breaks: megabytes in a log of CI,
	// before what matters. What ends this process is told by the runtime, which does not look here.
	said := os.Stderr
	if os.Stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		fmt.Fprintln(said, err)
		os.Exit(1)
	}
	code := needs.Main(m)
	os.Stderr = said
	if err := os.RemoveAll(binaries); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
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

// build returns the path of the binary.
func (b *program) build(t testing.TB) string {
	t.Helper()
	path, err := b.make()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *program) make() (string, error) {
	b.once.Do(func() {
		b.path = filepath.Join(binaries, fmt.Sprintf("%s-%t", filepath.Base(b.name), b.race))
		if runtime.GOOS == "windows" {
			b.path += ".exe"
		}
		args := []string{"build", "-o", b.path}
		if b.race {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, "./"+b.name)...)
		cmd.Dir = b.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("build %s: %w\n%s", b.name, err, out)
		}
	})
	return b.path, b.err
}
