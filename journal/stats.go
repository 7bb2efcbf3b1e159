// SPDX-License-Identifier: Apache-2.0

package journal

import "time"

// Stats is a picture of a journal. Counts are since Open.
type Stats struct {
	Bytes    int64 // of all segment files, those among them that hold nothing yet or nothing any more
	MaxBytes int64 // the limit of Bytes: Options.MaxBytes
	// What some cursor has yet to pass, headers and padding included; what remains of MaxBytes is
	// free, but for whole segments.
	Used     int64
	Segments int // that hold records
	Prepared int // waiting for use
	Spare    int // passed by all cursors, waiting to be recycled

	First    Position // before the oldest record
	Last     Position // end of what was appended
	Written  Position // end of what was handed to the kernel
	Synced   Position // end of what is durable
	Unsynced int64    // bytes written but not durable

	Records      uint64 // appended
	WrittenBytes uint64 // with headers and padding
	Batches      uint64 // writes
	Syncs        uint64
	SyncTime     time.Duration // that these took, together

	Created  uint64 // segment files made anew
	Recycled uint64 // and used again
	Dropped  uint64 // and given back to the disk

	Damaged          uint64 // regions that could not be read
	DamagedBytes     uint64
	QuarantinedFiles uint64 // files set aside whole

	Full bool  // an Append was refused and nothing has changed since
	Err  error // the failed write or sync from which the journal has not recovered
}

// Stats returns a picture of the journal.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{
		Bytes: j.bytes, MaxBytes: j.opt.MaxBytes, Used: j.behindLocked(j.lowestLocked()), Segments: len(j.segs),
		Prepared: len(j.ready), Spare: len(j.free),
		First: j.oldestLocked(), Last: j.endLocked(), Written: j.written, Synced: j.Synced(), Unsynced: j.unsynced,
		Records: j.appends, WrittenBytes: j.bytesIn, Batches: j.writes, Syncs: j.syncs, SyncTime: j.syncTime,
		Created: j.created, Recycled: j.recycled, Dropped: j.dropped,
		Full: j.full, Err: j.err,
	}
	s.Damaged, s.DamagedBytes, s.QuarantinedFiles = j.holes.counts()
	return s
}

// Behind returns how many bytes lie between p and the last record that was appended, headers and
// padding included. After a restart that may be some padding where there is no record.
func (j *Journal) Behind(p Position) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.behindLocked(p)
}

func (j *Journal) behindLocked(p Position) (n int64) {
	for _, s := range j.segs {
		from := int64(dataStart)
		switch {
		case s.seq < p.seq():
			continue
		case s.seq == p.seq():
			from = max(from, p.off())
		}
		n += max(0, s.last-from)
	}
	return n
}

// Age says when what ends at a position was written.
type Age struct {
	End  Position // padding included
	Time time.Time
}

// Found tells of each segment that the journal had when it was opened, and still has, when its file
// had last been written to, by the clock of the file system: that is how old its last record is.
// The segments are in order.
func (j *Journal) Found() []Age {
	j.mu.Lock()
	defer j.mu.Unlock()
	var list []Age
	for _, s := range j.segs {
		if !s.modified.IsZero() {
			list = append(list, Age{End: at(s.seq, s.last), Time: s.modified})
		}
	}
	return list
}
