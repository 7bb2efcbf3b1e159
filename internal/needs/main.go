// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"flag"
	"fmt"
	"io"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// module is what the names of packages begin with.
const module = "github.com/spillwaylog/spillway/"

// Main runs the tests of a package whose TestMain calls it, and returns the exit code. The go
// command drops what a package prints that passes; so this writes to the go command's own standard
// error, if it gets hold of that: while the tests run every 15 s the names of those that do, and at
// the end which were skipped and why. Under "go test work" the end of the whole tells that, see
// [Summary].
func Main(m *testing.M) (code int) {
	pc, _, _, _ := runtime.Caller(1)
	name := packageOf(runtime.FuncForPC(pc).Name())
	if !flag.Parsed() {
		flag.Parse()
	}
	out := goStderr()
	if out == nil {
		return m.Run()
	}
	defer out.Close()
	end := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { tell(out, name, end) })
	defer func() {
		close(end)
		telling.Wait()
		var err error
		if whole() {
			err = write(name)
		}
		if err != nil || !whole() || !summarised() {
			say(out, group([]notes{{Package: name, Skips: skips()}}))
		}
	}()
	return m.Run()
}

// tell writes what runs until the end, from the second tick on.
func tell(out io.Writer, name string, end <-chan struct{}) {
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	begin := time.Now()
	for n := 1; ; n++ {
		select {
		case <-end:
			return
		case <-tick.C:
		}
		if n > 1 {
			say(out, fmt.Sprintf("%s: %.0f s: %s\n", name, time.Since(begin).Seconds(),
				strings.Join(running(stacks()), ", ")))
		}
	}
}

// packageOf is the path of a function's package, without that of the module.
func packageOf(function string) string {
	base := path.Base(function)
	base, _, _ = strings.Cut(base, ".")
	name := strings.TrimSuffix(path.Join(path.Dir(function), base), "_test")
	return strings.TrimPrefix(name, module)
}

func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size {
			return string(b[:n])
		}
	}
}

var testFunction = regexp.MustCompile(`\.((?:Test|Fuzz|Example|Benchmark)[^.(]*)[^/\n]*\n[^\n]*\n(?:testing|internal/synctest)\.`)

// running finds the tests in the stacks of all goroutines that have begun and do not wait for
// others; of subtests it finds how many there are.
func running(stacks string) []string {
	count := map[string]int{}
	for _, g := range strings.Split(stacks, "\n\n") {
		m := testFunction.FindStringSubmatch(g)
		if m == nil || strings.Contains(g, "\ntesting.(*T).Parallel(") {
			continue
		}
		if n := count[m[1]]; !strings.Contains(g, "\ntesting.(*T).Run(") {
			count[m[1]] = n + 1
		} else {
			count[m[1]] = n
		}
	}
	var names []string
	for name, n := range count {
		if n > 1 {
			name = fmt.Sprintf("%s (%d at once)", name, n)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
