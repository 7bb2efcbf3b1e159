// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// helpCmd is for the list of commands: run makes "serve --help" of "help serve" before anything
// looks at it.
type helpCmd struct {
	Command []string `arg:"" optional:"" help:"Command to tell about."`
}

func helpArgs(args []string) []string {
	if len(args) == 0 || args[0] != "help" || len(args) > 1 && strings.HasPrefix(args[1], "-") { // as in help --help
		return args
	}
	return append(slices.Clone(args[1:]), "--help")
}
