// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"hash/crc32"
)

// Append adds one record, made of parts one after the other, and returns its end. The parts are
// copied. It does no I/O unless the batch that gathers records is full, and waits only then, or for
// a segment that is being prepared.
//
// On an error nothing was appended: [ErrFull], [ErrTooLarge], [ErrClosed], or that of a failed
// write or sync from which the journal has not recovered yet.
func (j *Journal) Append(parts ...[]byte) (Position, error) {
	_, pos, err := j.AppendAfter(parts...)
	return pos, err
}

// AppendAfter is Append that also returns the end of the record before: a Reader whose Pos is prev
// gets next the record that ends at pos. Of the first record in a directory prev is 0. Of the first
// one after Open it is the end of the last record that Open found, or the furthest cursor if that
// is beyond; where damage lies behind that record, prev may be no record's end, but it is never one
// that has another record behind it.
func (j *Journal) AppendAfter(parts ...[]byte) (prev, pos Position, err error) {
	// What costs time is done before the lock: the checksum, which the position is added to later.
	var n int64
	var crc uint32
	for _, p := range parts {
		n += int64(len(p))
		crc = crc32.Update(crc, castagnoli, p)
	}
	if n > maxRecordBytes || pageUp(dataStart+recordHeader+n) > j.opt.MaxBytes {
		return 0, 0, fmt.Errorf("%w: %d bytes, in a journal of %d", ErrTooLarge, n, j.opt.MaxBytes)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		batches, changed, err := j.roomLocked(n)
		switch {
		case err != nil:
			return 0, 0, err
		case batches == nil && changed == nil:
			prev, pos = j.addLocked(parts, n, crc)
			j.syncSometimeLocked()
			return prev, pos, nil
		}
		j.mu.Unlock()
		if batches != nil {
			_ = j.write(batches) // the error is sticky
		} else {
			<-changed
		}
		j.mu.Lock()
	}
}

// roomLocked says what is between a record of n bytes and the batch that is filling: an error,
// batches that the caller is to write, or a change that it is to wait for. All are nil when the
// record fits. With mu held.
func (j *Journal) roomLocked(n int64) (batches []*batch, changed <-chan struct{}, err error) {
	if err := j.usableLocked(); err != nil {
		return nil, nil, err
	}
	if j.pending >= batchBytes {
		if batches = j.takeToWriteLocked(); batches == nil {
			changed = j.waitChangeLocked()
		}
		return batches, changed, nil
	}
	if j.unsynced >= maxUnsynced {
		j.syncByLocked(0)
		return nil, j.waitChangeLocked(), nil
	}
	if j.seg != nil && place(j.off)+recordHeader+n <= j.seg.size {
		return nil, nil, nil
	}
	size := pageUp(dataStart + recordHeader + n)
	if s := j.takeReadyLocked(size); s != nil {
		j.beginLocked(s, j.Synced())
		return nil, nil, nil
	}
	if err := j.noRoomLocked(size); err != nil {
		return nil, nil, err
	}
	return nil, j.waitChangeLocked(), nil
}
