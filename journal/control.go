// SPDX-License-Identifier: Apache-2.0

package journal

import "os"

// control runs do with the descriptor, which stays open meanwhile even if Close is called.
func control(f *os.File, do func(fd uintptr) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := c.Control(func(fd uintptr) { inner = do(fd) }); err != nil {
		return err
	}
	return inner
}
