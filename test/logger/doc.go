// SPDX-License-Identifier: Apache-2.0

// Package logger opens the logger as applications do, closes it, fills what it writes to, and kills
// the processes that have it.
package logger
