// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spillwaylog/spillway/cmd/internal/merge"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

// A mergeDir reads the events of a directory as lines: of a ring, of all rings in it, of a journal
// or a data directory. Nothing is changed, whether it is in use or not.
type mergeDir struct {
	keys    lines.Options
	encoder *lines.Encoder
	printer recordPrinter
	line    []byte
	yield   merge.Yield
}

// events gives the events of a directory, in any order.
func (d *mergeDir) events(dir string, yield merge.Yield) error {
	var err error
	if d.encoder, err = lines.NewEncoder(&d.keys); err != nil {
		return err
	}
	d.yield = yield
	found := false
	list, err := os.ReadDir(dir)
	for _, e := range list { // one by one, since each is in memory as a whole
		if e.IsDir() && err == nil {
			var is bool
			is, err = d.rings(filepath.Join(dir, e.Name()))
			found = found || is
		}
	}
	if found || err != nil {
		return err
	}
	if found, err = d.rings(dir); found || err != nil {
		return err
	}
	i, err := journalDir{dir}.inspect()
	if err != nil {
		return err
	}
	return d.journal(i)
}

// rings gives the events of the rings in a folder; found says that there are some.
func (d *mergeDir) rings(dir string) (found bool, err error) {
	all, err := ring.Inspect(dir)
	if errors.Is(err, ring.ErrNone) {
		return false, nil
	}
	broken := uint64(0)
	for _, i := range all {
		if i.Err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", i.Path, i.Err))
		}
		var failed error
		i.AllRecords(func(r ring.Record) bool {
			tag, entry, bad := ringEvent(r)
			if bad != nil {
				broken++
				return true
			}
			failed = d.event(tag, entry)
			return failed == nil
		})
		if failed != nil {
			return true, failed
		}
		if !i.Live { // what is in use changes while it is read
			broken += i.Lost.Regions
		}
	}
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("%d records cannot be read", broken))
	}
	return true, err
}

func (d *mergeDir) journal(i *journal.Inspection) error {
	broken := 0
	for _, g := range i.Segments {
		broken += len(g.Damage)
		if g.Err != nil {
			broken++
		}
	}
	var failed error
	err := i.Records(func(r journal.Record) bool {
		var bad bool
		if bad, failed = d.printer.events(r, d.event); bad {
			broken++
		}
		return failed == nil
	})
	if broken > 0 {
		err = errors.Join(err, fmt.Errorf("%d records cannot be read", broken))
	}
	return errors.Join(failed, err)
}

func (d *mergeDir) event(tag string, e forward.Entry) error {
	d.line = d.encoder.AppendLine(d.line[:0], tag, e)
	return d.yield(nanosOf(e), d.line[:len(d.line)-1])
}

// nanosOf is the time of an entry, or the nearest that fits.
func nanosOf(e forward.Entry) int64 {
	switch most := int64(math.MaxInt64/1_000_000_000 - 5); {
	case e.Sec > most:
		return math.MaxInt64
	case e.Sec < -most:
		return math.MinInt64
	}
	return e.Sec*1_000_000_000 + int64(e.Nsec)
}
