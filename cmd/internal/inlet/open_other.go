// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package inlet

import (
	"errors"
	"os"
)

// Open says that there is no such memory here.
func Open(string, func(error)) (*Inlet, error) {
	return nil, errors.New("this system has no memory that outlives the process")
}

// Close does nothing: there is none.
func (*Inlet) Close() error { return nil }

// PipeOf knows none.
func PipeOf(*os.File) Pipe { return Pipe{} }
