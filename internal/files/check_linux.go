// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tryCreate makes a file without a name in a directory, so that nobody sees it, where the file
// system can do that.
func tryCreate(dir string) error {
	f, err := os.OpenFile(dir, os.O_WRONLY|unix.O_TMPFILE, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, unix.ENOTDIR):
		return err
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENOENT), errors.Is(err,
		unix.EINVAL):
		return tryNamed(dir)
	}
	return fmt.Errorf("%s takes no new file: %w", dir, err)
}
