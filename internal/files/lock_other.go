// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package files

import (
	"errors"
	"os"
)

// lockFile would keep a file from being compressed while others write it. Where an open file cannot
// be removed that is so already.
func lockFile(*os.File, bool) bool { return true }

// lockDir would keep two processes from rotating one file. Where an open file cannot be renamed
// only one can.
func lockDir(string) (unlock func(), ok bool) { return func() {}, true }

// canWait says that awaitFile locks.
const canWait = false

func awaitFile(*os.File) error { return errors.ErrUnsupported }

func claimFile(*os.File) error { return errors.ErrUnsupported }

func processLives(int) bool { return true }

func unlockFile(*os.File) {}
