// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package processes

import (
	"errors"
	"os"
	"time"
)

func lock(*os.File) error { return errors.ErrUnsupported }

func busy(error) bool { return false }

func ownCPU() time.Duration { return 0 }
