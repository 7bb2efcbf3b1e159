// SPDX-License-Identifier: Apache-2.0

package main

import "io"

// streams are the standard ones, so that tests can have others.
type streams struct {
	in       io.Reader
	out, err io.Writer
}
