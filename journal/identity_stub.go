// SPDX-License-Identifier: Apache-2.0

package journal

// Identity is 16 random bytes that belong to the directory.
func (j *Journal) Identity() (id [16]byte) { return id }
