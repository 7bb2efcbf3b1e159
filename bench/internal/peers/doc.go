// SPDX-License-Identifier: Apache-2.0

// Package peers has the local loggers of the comparisons behind one face: what each writes, with
// which settings, and what it costs to end it.
package peers
