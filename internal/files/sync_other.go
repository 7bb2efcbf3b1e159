// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import "os"

// syncData makes the bytes of a file and its length durable.
func syncData(f *os.File) error { return f.Sync() }

// pushData would set the disk to work.
func pushData(*os.File) {}

// awaitWrites would wait for the writes to a file that are under way.
func awaitWrites(*os.File) {}

// bootID would say which start of the machine this is.
func bootID() uint32 { return 0 }
