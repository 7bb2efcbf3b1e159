// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package test

import "github.com/spillwaylog/spillway/internal/needs"

// account asks a running collector, which takes a signal that there is not here.
func (c *collector) account() account {
	c.t.Helper()
	needs.Skip(c.t, "no SIGUSR1 here")
	return nil
}
