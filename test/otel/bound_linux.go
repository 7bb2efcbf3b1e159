// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// bound limits the process's memory, since some of the suite's messages claim gigabytes.
func bound() error {
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 4 << 30, Max: 4 << 30})
}
