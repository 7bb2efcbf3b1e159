// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
)

// retryAfterErrorLocked tries to go on after a failed write or sync. Only the syncer calls it, with
// mu held, which it lets go meanwhile.
//
// A kernel that fails to write pages back may mark them clean, so syncing again would prove
// nothing. What was written since the last good sync is therefore written again to its place; then
// what could not be written, from the batches that still hold it.
func (y *syncer) retryAfterErrorLocked() {
	y.awaitWriterLocked()
	was := y.err
	for _, s := range slices.Clone(y.segs) {
		if s.wrote <= s.clean {
			continue
		}
		from, to := pageDown(s.clean), pageUp(s.wrote)
		y.mu.Unlock()
		err := s.again(from, to)
		y.mu.Lock()
		y.markDirtyLocked(s)
		if err != nil {
			y.failLocked(fmt.Errorf("journal: write again: %w", err))
			return
		}
	}
	if y.flushLocked() != nil {
		return
	}
	for _, s := range y.segs {
		s.kept = nil
	}
	y.err = nil
	y.retryIn = minRetry
	y.tellLocked(&RecoveredError{Err: was})
	y.openSpaceLocked()
	y.broadcastLocked()
}

// again writes [from,to) again, from memory as far as it was kept.
func (s *segment) again(from, to int64) error {
	if s.kept != nil {
		b := s.kept[:min(int64(len(s.kept)), to-from)]
		if _, err := s.file.WriteAt(b, from); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return rewrite(s.file, from, to)
}

// rewrite reads [from,to) and writes the same bytes.
func rewrite(f File, from, to int64) error {
	buf := make([]byte, min(to-from, scanBlock))
	for from < to {
		n := int(min(to-from, int64(len(buf))))
		if _, err := f.ReadAt(buf[:n], from); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf[:n], from); err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// RecoveredError is reported when the journal goes on after a failed write or sync. Nothing was
// lost.
type RecoveredError struct{ Err error }

func (e *RecoveredError) Error() string {
	return fmt.Sprintf("journal: goes on, nothing was lost, after: %v", e.Err)
}

// Unwrap is what had failed.
func (e *RecoveredError) Unwrap() error { return e.Err }
