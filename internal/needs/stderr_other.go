// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package needs

import (
	"io"
	"os"
)

// goStderr is the terminal, if there is one: another process's standard error cannot be had here.
func goStderr() io.WriteCloser {
	f, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return f
}

// summarised is false where it is not known: each package tells for itself.
func summarised() bool { return false }

func siblings() int { return 0 }
