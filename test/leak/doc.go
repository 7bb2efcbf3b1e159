// SPDX-License-Identifier: Apache-2.0

// Package leak runs collector, server and client in one process and wants every goroutine of theirs
// to end.
package leak
