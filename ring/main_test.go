// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// childRole tells a process started by a test what it is for.
const childRole = "SPILLWAY_RING_CHILD"

var roles = map[string]func() error{}

func TestMain(m *testing.M) {
	keepFor, retryAfter = 3*time.Millisecond, 3*time.Millisecond // so that memory comes and goes in all tests
	if role := os.Getenv(childRole); role != "" {
		if err := roles[role](); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := needs.Main(m)
	if code == 0 {
		code = leaked()
	}
	os.Exit(code)
}

// warm gives the ring all of its memory.
func (r *Ring) warm(tb testing.TB) {
	tb.Helper()
	if r.backing == nil {
		return
	}
	t := &tender{segments: &r.segments, b: r.backing}
	for at := range r.pool.n {
		fresh := r.pool.takeAbsent(at)
		if !t.fill(at) {
			tb.Fatal(*r.backing.why.Load())
		}
		if fresh {
			r.pool.put(at, 1)
		}
	}
}

// leaked finds goroutines of this package that outlived the tests.
func leaked() int {
	deadline := time.Now().Add(time.Minute)
	for {
		buf := make([]byte, 1<<20)
		var left []string
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")[1:] {
			if strings.Contains(g, "spillway/ring.") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			fmt.Println("goroutines left:\n" + strings.Join(left, "\n\n"))
			return 1
		}
		runtime.Gosched()
	}
}

func overwrite(t *testing.T, name string, at int64, s string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(s), at); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, name string, size int64) {
	t.Helper()
	if err := os.Truncate(name, size); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}
