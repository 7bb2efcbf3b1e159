// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package await

import (
	"context"
	"os"
)

// Readable does not wait here: a read lasts until something comes.
func Readable(ctx context.Context, _ *os.File) error { return ctx.Err() }
