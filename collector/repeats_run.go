// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillwaylog/spillway/journal"
)

// run saves now and then until ctx is done, and once more then. Seldom, since
// what is not saved is in the journal, but at each new segment, since a segment
// is held until it is saved.
func (f *repeatsFile) run(ctx context.Context, j *journal.Journal, report func(error)) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			if err := f.save(j.Synced()); err != nil {
				report(fmt.Errorf("%s: %w", f.path, err))
			}
			return
		case <-tick.C:
		}
		synced := j.Synced()
		f.mu.Lock()
		many := len(f.unsaved) > saveBytes
		f.mu.Unlock()
		if synced>>32 == f.saved>>32 && time.Since(last) < 10*time.Second && !many {
			continue
		}
		last = time.Now()
		if err := f.save(synced); err != nil {
			report(f.later(err))
		}
	}
}

func (f *repeatsFile) close() error {
	err := f.cursor.Close()
	if f.file != nil {
		err = errors.Join(err, f.file.Close())
	}
	return err
}
