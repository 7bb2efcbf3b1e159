// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"time"
)

// Rotation says when a file gets another name and a new one is begun, and what becomes of those
// that were rotated. The zero value never rotates.
//
// Where {pid}, {date} or {hour} is in the path, what is said of rotated files is of all files of
// the path that nobody writes: those of all processes and times, of one tag, together. See Gathers.
//
// A rotated file has the time of its rotation, in UTC, in its name: app.jsonl becomes
// app-20261121T020304.123.jsonl, and .gz or .zst stands behind that when it is compressed. Such
// names sort by time. Only regular files with such a name are ever compressed or deleted.
type Rotation struct {
	Size   int64         // no file gets larger, but for one line that is larger alone; 0: however large
	Every  time.Duration // and at each multiple of that since 1970, in UTC; 0: however old
	Keep   int           // rotated files kept of one path; 0: all
	MaxAge time.Duration // those rotated, or not written, for longer are deleted; 0: none
	// Bytes of all files of one path, those that are written too, until which the oldest of the
	// others are deleted; 0: however many.
	MaxTotal int64
	Compress string // in the background, with "gzip" or "zstd"; "": not at all
}

// on reports whether files are rotated.
func (r *Rotation) on() bool { return r.Size > 0 || r.Every > 0 }

// tends reports whether something is done with files that nobody writes.
func (r *Rotation) tends() bool {
	return r.Keep > 0 || r.MaxAge > 0 || r.MaxTotal > 0 || r.Compress != ""
}

// Idle reports whether something is said of rotated files and none is ever rotated.
func (r *Rotation) Idle() bool { return r.tends() && !r.on() }

func (r *Rotation) check() error {
	if r.Size < 0 || r.Every < 0 || r.Keep < 0 || r.MaxAge < 0 || r.MaxTotal < 0 {
		return fmt.Errorf("files: rotation: a size, time or number is negative")
	}
	if r.Every > 0 && r.Every < time.Second {
		return fmt.Errorf("files: rotation every %v, which is less than a second", r.Every)
	}
	if how := r.Compress; how != "" && how != "gzip" && how != "zstd" {
		return fmt.Errorf("files: rotation: no compression %q: gzip or zstd", how)
	}
	return nil
}

// period numbers the times between two rotations.
func (r *Rotation) period(t time.Time) int64 {
	if r.Every == 0 {
		return 0
	}
	step := int64(r.Every / time.Second)
	sec := t.Unix()
	n := sec / step
	if sec%step < 0 {
		n--
	}
	return n
}
