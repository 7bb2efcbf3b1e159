// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// Resident is the resident memory of the process in bytes.
func Resident(t testing.TB, c *Collector) int64 { return Status(t, c, "VmRSS:") }

// Status is a figure of the process in bytes.
func Status(t testing.TB, c *Collector, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Cmd.Process.Pid))
	Must(t, err)
	_, rest, ok := bytes.Cut(b, []byte(name))
	var kb int64
	if _, err := fmt.Sscan(string(rest), &kb); err != nil || !ok {
		t.Fatalf("no %s %v", name, err)
	}
	return kb << 10
}
