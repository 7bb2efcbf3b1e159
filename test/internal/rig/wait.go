// SPDX-License-Identifier: Apache-2.0

package rig

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

// Figure logs a measured figure, and appends it to the file that CI prints at its end.
func Figure(t testing.TB, format string, args ...any) {
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

// Random is a source of randomness whose seed is printed.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SPILLWAY_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		Must(t, err)
	}
	t.Logf("SPILLWAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// Eventually polls until ok, and fails the test when it is not so within a minute or more: no test
// asserts a time.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

// SocketPath is a path for a unix socket; they must be short.
func SocketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sw")
	Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// Kills is how many times.
func Kills(t testing.TB) int {
	t.Helper()
	if testing.Short() {
		return needs.Rounds(t, "SPILLWAY_KILLS", 5, 5)
	}
	return needs.Rounds(t, "SPILLWAY_KILLS", 10, 30)
}

// Must ends the test for an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Quickly are parameters of an output that tries again at once.
const Quickly = "min_backoff=1ms&max_backoff=20ms"

// Pause waits a random time, at most d, or until the collector ends.
func Pause(c *Collector, r *rand.Rand, d time.Duration) {
	select {
	case <-c.Done:
	case <-time.After(time.Duration(r.Int64N(int64(d)))):
	}
}
