// SPDX-License-Identifier: Apache-2.0

// Package skipped has no test. It is the last package of the workspace, in the order in which the
// go command prints results: there it tells what the others skipped, see [needs.Summary].
package skipped

import (
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestMain does not run m: of such a package the go command caches no result.
func TestMain(*testing.M) { needs.Summary() }
