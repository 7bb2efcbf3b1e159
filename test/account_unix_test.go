// SPDX-License-Identifier: Apache-2.0

//go:build unix

package test

import (
	"strings"
	"syscall"
)

// account asks a running collector.
func (c *collector) account() account {
	c.t.Helper()
	before := strings.Count(c.log.String(), accountMark)
	if err := c.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, "the collector gives account",
		func() bool { return strings.Count(c.log.String(), accountMark) > before || c.over() })
	return c.lastAccount()
}
