// SPDX-License-Identifier: Apache-2.0

package follow

import "time"

// How long a follower waits for what, and how often it does what. Pauses that grow, the backoff,
// begin with retryPause and double.

// Commits and flushes.
const (
	// commitEvery is how long the cursor may stay behind what is done. After a crash the output
	// compares, or repeats, what it did since.
	commitEvery = time.Second
	// commitBytes bounds the same by volume.
	commitBytes = 64 << 20
	// batchPause is how long a follower that has caught up lets records gather.
	batchPause = 8 * time.Millisecond
	// idleFlush is how often an output is flushed that gets nothing, to let go of what it has not
	// needed for long.
	idleFlush = time.Minute
)

// Pauses after errors.
const (
	// retryPause is the pause after a commit that failed, dead letters that were not stored, or a
	// record that could not be read: the disk may work again. It is also the first pause before an
	// output is opened again, and the first one after a try to give something up that failed.
	retryPause = 200 * time.Millisecond
	// maxReopenPause is the longest pause before an output is opened again.
	maxReopenPause = 30 * time.Second
	// maxGivePause is the longest pause after a try to give something up that failed.
	maxGivePause = 30 * time.Second
)

// Closing.
const (
	// finishFor is how long an output may take to close that has done all: it may compress a file.
	finishFor = 6 * time.Second
	// closeFor is how long another one may.
	closeFor = 900 * time.Millisecond
	// givePatience is how long an output has to finish what is on its way before it is closed. One
	// that is only slow does so, and need not be opened again.
	givePatience = time.Second
)

// Looks.
const (
	// lookEvery is how often a follower looks whether its output is too far behind.
	lookEvery = 200 * time.Millisecond
	// hangsAfter is how long an output may have chunks and finish none before that is said.
	hangsAfter = 10 * time.Second
	// suspectedFor is how long a record may be in hand before it is no longer suspected: it waits.
	suspectedFor = 10 * time.Second
	// waitingEvery is how often a trial looks whether its record waits.
	waitingEvery = 2 * time.Millisecond
)
