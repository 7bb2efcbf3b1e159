// SPDX-License-Identifier: Apache-2.0

//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package ring

import (
	"encoding/hex"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func allocate(f *os.File, from, to int64) error { return writeZeros(f, from, to) }

func allocateOverwrites(*os.File) bool { return true }

const canPunch = false

func punch(*os.File, int64, int64) error { return nil }

func room(*os.File) int64 { return math.MaxInt64 }

func isTmpfs(*os.File) bool { return false }

func dataEnd(_ *os.File, off int64) int64 { return off }

func keepFromChildren([]byte) error { return nil } // Go programs do not fork without exec here

func populate([]byte) {}

// bootID is the time at which the machine started.
func bootID() (string, error) {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(tv)), unsafe.Sizeof(*tv))), nil
}
