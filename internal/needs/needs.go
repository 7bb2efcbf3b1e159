// SPDX-License-Identifier: Apache-2.0

// Package needs is for tests that need something of their machine: the right to mount, IPv6, memory that is shared, an address of their own.
package needs

import (
	"os"
	"testing"
)

// Have ends the test when what it needs is missing: it fails in CI (the environment has CI=true), and is skipped elsewhere. The text says
// what is missing and how to get it.
func Have(t testing.TB, have bool, format string, args ...any) {
	t.Helper()
	if have {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
