// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package forward

// initRaw leaves the connection to be read through its interface.
func (*reader) initRaw() {}
