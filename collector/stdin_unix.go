// SPDX-License-Identifier: Apache-2.0

//go:build unix

package collector

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// waitReadable waits until a read of f would not wait, or ctx ends.
func waitReadable(ctx context.Context, f *os.File) error {
	const look = 100 // milliseconds between two looks at ctx
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}, look)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, unix.EINTR), err == nil && n == 0:
		default:
			return nil // the read says what is wrong
		}
	}
}
