// SPDX-License-Identifier: Apache-2.0

//go:build unix

package await

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Readable returns when a read of f would not wait, also to say that f has ended or what is wrong
// with it, or with the error of ctx. On systems that are no Unix it does not wait.
func Readable(ctx context.Context, f *os.File) error {
	const look = 100 // milliseconds between two looks at ctx
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, look)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
		default:
			return nil
		}
	}
}
