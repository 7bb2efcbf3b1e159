// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spillwaylog/spillway/internal/urls"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

// A usageError is a mistake of the command line that only the command itself can find.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	var badURL *urls.Error
	if errors.As(err, &usage) || errors.As(err, &badURL) {
		return exitUsage
	}
	return exitFailed
}
