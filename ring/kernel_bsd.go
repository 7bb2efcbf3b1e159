// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"encoding/hex"
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func allocate(f *os.File, size int64) error { return writeZeros(f, size) }

func keepFromChildren([]byte) error { return nil } // Go programs do not fork without exec here

func populate([]byte) error { return errors.ErrUnsupported } // so all memory is there from the start

func punch([]byte) error { return errors.ErrUnsupported }

// dataEnd is not known here.
func dataEnd(_ *os.File, _, _, limit int64) int64 { return limit }

// bootID is the time at which the machine started.
func bootID() (string, error) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(tv)), unsafe.Sizeof(*tv))), nil
}
