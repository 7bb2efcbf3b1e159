// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"fmt"
	"time"
)

const (
	defaultMaxBytes     = 4 << 30
	defaultSegmentBytes = 16 << 20
	minSegmentBytes     = 64 << 10
	maxSegmentBytes     = 1 << 30
)

// Options of [Open]. The zero value, and nil, are the defaults.
type Options struct {
	// MaxBytes bounds the sum of all segment files, spare ones included (default 4 GiB). Beyond it
	// Append answers ErrFull. Cursor files and what is in quarantine do not count.
	MaxBytes int64
	// SegmentBytes is the size of a segment file (default 16 MiB, at most 1 GiB and a quarter of
	// MaxBytes). A record larger than a segment gets one of its own size.
	SegmentBytes int64
	// MaxRecord is the longest record that is read (default 1 GiB): what says that it is longer is
	// damage. It bounds the memory that a journal of somebody else can take.
	MaxRecord int64
	// Reserve is room on the disk that is kept, beside the segments, for what has to be written
	// before a full disk can be emptied: cursors, and what [Journal.WithReserve] is called for
	// (default 0, none). Without it a cursor whose state grows may have to wait for room that its
	// moving would make.
	Reserve int64
	// FS is the file seam; nil is the operating system.
	FS FS
	// Report is told about damage, quarantines, errors of writing and syncing, and recoveries from
	// them. It is called from the journal's goroutines and from Open and readers, must not block
	// for long and must not call the journal. nil drops.
	Report func(error)
	// Synced is told how long each sync took that did not fail, by the goroutine that syncs: it
	// must not block, and must not call the journal. nil drops.
	Synced func(took time.Duration)
}

func (o *Options) withDefaults() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	r.MaxBytes = cmp.Or(r.MaxBytes, defaultMaxBytes)
	r.SegmentBytes = cmp.Or(r.SegmentBytes, defaultSegmentBytes)
	if r.MaxBytes < 4*minSegmentBytes {
		return r, fmt.Errorf("journal: MaxBytes %d is below %d", r.MaxBytes, 4*minSegmentBytes)
	}
	if r.SegmentBytes < minSegmentBytes || r.SegmentBytes > maxSegmentBytes {
		return r, fmt.Errorf("journal: SegmentBytes %d is not in %d..%d", r.SegmentBytes, minSegmentBytes,
			maxSegmentBytes)
	}
	r.MaxRecord = cmp.Or(r.MaxRecord, maxRecordBytes)
	if r.Reserve < 0 {
		return r, fmt.Errorf("journal: Reserve %d is below 0", r.Reserve)
	}
	r.Reserve = pageUp(r.Reserve)
	r.SegmentBytes = min(r.SegmentBytes, r.MaxBytes/4) &^ (pageSize - 1)
	r.FS = cmp.Or[FS](r.FS, osFS{})
	if r.Report == nil {
		r.Report = func(error) {}
	}
	if r.Synced == nil {
		r.Synced = func(time.Duration) {}
	}
	return r, nil
}
