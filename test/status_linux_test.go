// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// resident is the resident memory of the process in bytes.
func resident(t testing.TB, c *collector) int64 { return status(t, c, "VmRSS:") }

// status is a figure of the process in bytes.
func status(t testing.TB, c *collector, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	must(t, err)
	_, rest, ok := bytes.Cut(b, []byte(name))
	var kb int64
	if _, err := fmt.Sscan(string(rest), &kb); err != nil || !ok {
		t.Fatalf("no %s %v", name, err)
	}
	return kb << 10
}
