// SPDX-License-Identifier: Apache-2.0

//go:build race

package forward

// raceEnabled says that allocations are not worth counting: the race detector makes pools forget at
// random.
const raceEnabled = true
