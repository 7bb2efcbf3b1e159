// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"time"
)

// usage is what a process has used up to now.
type usage struct {
	cpu      time.Duration // user and system, all threads, of those that ended too
	resident int64         // bytes
}

// errUnmeasured is what reading a usage returns where there is no /proc.
var errUnmeasured = errors.New("CPU and memory of a process are measured on Linux only")
