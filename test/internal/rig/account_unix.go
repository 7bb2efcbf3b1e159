// SPDX-License-Identifier: Apache-2.0

//go:build unix

package rig

import (
	"strings"
	"syscall"
)

// Account asks a running collector.
func (c *Collector) Account() Account {
	c.T.Helper()
	before := strings.Count(c.Log.String(), accountMark)
	if err := c.Cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		c.T.Fatal(err)
	}
	Eventually(c.T, "the collector gives account",
		func() bool { return strings.Count(c.Log.String(), accountMark) > before || c.Over() })
	return c.LastAccount()
}
