// SPDX-License-Identifier: Apache-2.0

// Package needs is for tests that need something of their machine: the right to mount, IPv6, an
// interpreter, memory that is shared, an address of their own, time.
//
// What was skipped for the lack of it is told, and what takes long, although "go test" drops all
// that a passing package prints: see [Main].
package needs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Have ends the test when what it needs is missing: it fails in CI (the environment has CI=true),
// and is skipped and told elsewhere. The text says what is missing and how to get it.
func Have(t testing.TB, have bool, format string, args ...any) {
	t.Helper()
	if have {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	note(t.Name(), fmt.Sprintf(format, args...))
	t.Skipf(format, args...) //nolint:forbidigo // it was told
}

// Time ends a test that takes more of it than -short gives.
func Time(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		note(t.Name(), "-short")
		t.Skip(why) //nolint:forbidigo // it was told
	}
}

// Skip ends a test that has nothing to test here, whatever the machine had: on another operating
// system, under the race detector, of another server. Nobody is told.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()
	t.Skipf(format, args...) //nolint:forbidigo // no news
}

// Long tells whether the environment wants the long version of each test, as CI does.
func Long() bool { return os.Getenv("SPILLWAY_LONG") == "true" }

// Rounds is how often a test does what it does: as the environment's variable of that name says, or
// else long where it wants long versions, or else short.
func Rounds(t testing.TB, variable string, short, long int) int {
	t.Helper()
	text := os.Getenv(variable)
	switch {
	case text != "":
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			t.Fatalf("%s=%s is no number of rounds", variable, text)
		}
		return n
	case Long():
		return long
	}
	return short
}

// Cache is the one folder outside the checkout in which tests leave something: clients that they
// installed, and what they skipped.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "spillway-test")
	return dir, os.MkdirAll(dir, 0o700)
}
