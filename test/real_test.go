// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// figure logs a measured figure, and appends it to the file that CI prints at its end.
func figure(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Logf(format, args...)
	name := os.Getenv("SPILLWAY_FIGURES")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s (%d bits): %s\n", t.Name(), strconv.IntSize,
		fmt.Sprintf(format, args...)); err != nil {
		t.Fatal(err)
	}
}

// random is a source of randomness whose seed is printed.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SPILLWAY_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("SPILLWAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// eventually polls until ok, and fails the test when it is not so within a minute or more: no test
// asserts a time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// socketPath is a path for a unix socket; they must be short.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sw")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// kills is how many times.
func kills(t testing.TB) int {
	t.Helper()
	if testing.Short() {
		return needs.Rounds(t, "SPILLWAY_KILLS", 5, 5)
	}
	return needs.Rounds(t, "SPILLWAY_KILLS", 10, 50)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const quickly = "min_backoff=1ms&max_backoff=20ms"

// pause waits a random time, at most d, or until the collector ends.
func pause(c *collector, r *rand.Rand, d time.Duration) {
	select {
	case <-c.done:
	case <-time.After(time.Duration(r.Int64N(int64(d)))):
	}
}
