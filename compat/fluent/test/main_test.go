// SPDX-License-Identifier: Apache-2.0

package test_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestMain gives all tests a folder of their own for rings.
func TestMain(m *testing.M) {
	if child := os.Getenv("COMPAT_CHILD"); child != "" {
		runChild(child)
		return
	}
	dir, err := os.MkdirTemp("", "compat")
	if err == nil {
		err = os.Setenv("SPILLWAY_SHM", dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(told{m}, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// told runs the tests as [needs.Main] does, goleak looks behind it.
type told struct{ *testing.M }

// What a bounded Close left behind on a busy machine has a minute to end.
func (t told) Run() int {
	code := needs.Main(t.M)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if goleak.Find() == nil {
			break
		}
	}
	return code
}
