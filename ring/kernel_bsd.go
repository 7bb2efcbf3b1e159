// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"encoding/hex"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func allocate(f *os.File, size int64) error { return writeZeros(f, size) }

func keepFromChildren([]byte) error { return nil } // Go programs do not fork without exec here

func populate([]byte) bool { return false }

// bootID is the time at which the machine started.
func bootID() (string, error) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(tv)), unsafe.Sizeof(*tv))), nil
}
