// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package output

import (
	"io"
	"os"
	"time"
)

// stdio is for systems whose descriptors may not block.
type stdio struct{ *os.File }

func newStdio(f *os.File) io.Writer { return f }

func (s *stdio) await(d time.Duration) { <-time.After(d) }

func isFull(error) bool { return false }

func isTerminal(*os.File) bool { return false }
