// SPDX-License-Identifier: Apache-2.0

package files

import "time"

// Rotation says when a file gets another name and a new one is begun, and what becomes of those that were rotated. The
// zero value never rotates.
type Rotation struct {
	Size     int64         // a file is rotated before it gets larger; 0: however large
	Every    time.Duration // and at each multiple of that since 1970, in UTC; 0: however old
	Keep     int           // rotated files kept of one path; 0: all
	MaxAge   time.Duration // rotated files that are older are deleted; 0: none
	Compress bool          // with gzip, in the background
}
