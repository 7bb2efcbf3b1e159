// SPDX-License-Identifier: Apache-2.0

// Package test holds the tests of package fluent, in a module of their own. They import the
// original as an oracle, and package fluent by its own path; beside the package they would be part
// of what "go mod tidy" looks at where a replace directive gives the package another path.
package test
