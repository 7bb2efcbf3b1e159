// SPDX-License-Identifier: Apache-2.0

package journal

import "fmt"

// retryAfterError tries to go on after a failed write or sync. Only the syncer calls it.
//
// A kernel that fails to write pages back may mark them clean, so syncing again would prove
// nothing. What was written since the last good sync is therefore written again to its place; then
// what could not be written, from the batches that still hold it.
func (y *syncer) retryAfterError() {
	for _, s := range y.unwritten() {
		err := s.again(pageDown(s.clean), pageUp(s.wrote))
		y.mu.Lock()
		y.markDirtyLocked(s)
		if err != nil {
			y.failLocked(fmt.Errorf("journal: write again: %w", err))
		}
		y.mu.Unlock()
		if err != nil {
			return
		}
	}
	if y.flush() != nil {
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, s := range y.segs {
		s.kept = nil
	}
	was := y.err
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
