// SPDX-License-Identifier: Apache-2.0

// Package kill ends collectors at any moment, by kill -9 and power cuts, with flaky networks before
// them, and looks at what is there afterwards: each event that was acked.
package kill
