// SPDX-License-Identifier: Apache-2.0

// Package ring keeps records in memory that outlives the process: append without waiting, one merging reader, adoption of a dead owner's ring.
// It does not know what a record means.
package ring
