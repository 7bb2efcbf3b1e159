// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spillwaylog/spillway/internal/codes"
	"github.com/spillwaylog/spillway/journal"
)

// openPumps opens the outputs, each with its cursor. An output that is new
// begins where the one furthest behind stands, which may be one that is not
// configured any more: so exchanging an output loses nothing and repeats
// nothing. It returns the cursors that no output has. ends are the outputs of the run before.
func (c *Collector) openPumps(plans []plannedOutput, ends map[string]End) (unused map[string]bool, err error) {
	old := map[string]bool{}
	for _, name := range c.journal.Cursors() {
		switch name {
		case repeatsCursor, positionsCursor:
		case startBacklogCursor: // a crash left it
			if err := c.journal.RemoveCursor(name); err != nil {
				return nil, err
			}
		default:
			old[name] = true
		}
	}
	start, err := c.furthestBehind(old)
	if err != nil {
		return nil, err
	}
	for i := range plans {
		p := &plans[i]
		if !old[p.cursor] && old[p.unnamed] &&
			!slices.ContainsFunc(plans, func(q plannedOutput) bool { return q.cursor == p.unnamed }) {
			if err := adopt(c.journal, p); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			old[p.cursor] = true
		}
		isNew := !old[p.cursor]
		if isNew { // at once: killed on the way, it would begin at the oldest record
			if err := c.journal.PlaceCursor(p.cursor, start, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			if _, had := ends[p.cursor]; had {
				codes.OutputAnew.Warn(c.config.Log, "the place of this output in the journal is gone: it begins anew",
					"output", p.name, "cursor", p.cursor, "behind_bytes", c.journal.Behind(start))
			}
		}
		pump, err := c.openPump(context.Background(), p, i, &ledger{}, true)
		if err != nil {
			if pump != nil {
				err = errors.Join(err, pump.letGo())
			}
			if isNew { // nothing would ever read on there
				_ = c.journal.RemoveCursor(p.cursor)
			}
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		c.pumps = append(c.pumps, pump)
		delete(old, p.cursor)
	}
	return old, nil
}

// adopt gives an output that got a name the place that it had without one. The old cursor goes with
// those that no output has.
func adopt(j *journal.Journal, plan *plannedOutput) error {
	from, err := j.Reader(plan.unnamed)
	if err != nil {
		return err
	}
	at, state := from.Committed()
	if err := from.Close(); err != nil {
		return err
	}
	return j.PlaceCursor(plan.cursor, at, state) // at once: killed on the way, it would begin at the oldest record
}

// furthestBehind returns the lowest position of the named cursors.
func (c *Collector) furthestBehind(names map[string]bool) (journal.Position, error) {
	var lowest journal.Position
	first := true
	for name := range names {
		r, err := c.journal.Reader(name)
		if err != nil {
			return 0, err
		}
		at, _ := r.Committed()
		if first || at < lowest {
			lowest, first = at, false
		}
		if err := r.Close(); err != nil {
			return 0, err
		}
	}
	return lowest, nil
}
