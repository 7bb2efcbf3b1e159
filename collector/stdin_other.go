// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package collector

import (
	"context"
	"os"
)

// waitReadable does not wait: here a read of standard input lasts until something comes.
func waitReadable(context.Context, *os.File) error { return nil }
