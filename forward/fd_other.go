// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package forward

import (
	"errors"
	"syscall"
)

// readFD is never called: nothing reads without waiting.
func readFD(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

// unreadOf cannot tell.
func unreadOf(syscall.RawConn) bool { return false }
