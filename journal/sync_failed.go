// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"slices"
)

const keepTries = 20

// keep reads what was written since the last good sync into memory, as soon as a sync failed: the
// kernel may take these pages for clean and drop them. With mu held, by the syncer; after fail, so
// that nothing more is written.
func (j *Journal) keep() {
	j.awaitWriter()
	for _, s := range slices.Clone(j.segs) {
		from, to := pageDown(s.clean), pageUp(s.wrote)
		if s.wrote <= s.clean {
			continue
		}
		j.mu.Unlock()
		b := make([]byte, to-from)
		// What an earlier failure kept is surer than what can be read now, but for its last page:
		// that may have more in it since.
		n := copy(b, s.kept[:max(0, len(s.kept)-pageSize)])
		_, err := s.file.ReadAt(b[n:], from+int64(n))
		for tries := 1; err != nil && tries < keepTries; tries++ { // what fails to sync may fail to read for a moment, too
			_, err = s.file.ReadAt(b[n:], from+int64(n))
		}
		j.mu.Lock()
		if err == nil {
			s.kept = b
		}
	}
}

// goOn tries to go on after a failed write or sync. Only the syncer calls it, with mu held, which
// it lets go meanwhile.
//
// A kernel that fails to write pages back may mark them clean, so syncing again would prove
// nothing. What was written since the last good sync is therefore written again to its place; then
// what could not be written, from the batches that still hold it.
func (j *Journal) goOn() {
	j.awaitWriter()
	was := j.err
	for _, s := range slices.Clone(j.segs) {
		if s.wrote <= s.clean {
			continue
		}
		from, to := pageDown(s.clean), pageUp(s.wrote)
		j.mu.Unlock()
		err := s.again(from, to)
		j.mu.Lock()
		j.soil(s)
		if err != nil {
			j.fail(fmt.Errorf("journal: write again: %w", err))
			return
		}
	}
	if j.flush() != nil {
		return
	}
	for _, s := range j.segs {
		s.kept = nil
	}
	j.err = nil
	j.retryIn = minRetry
	j.tell(&RecoveredError{Err: was})
	j.openSpace()
	j.broadcast()
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
