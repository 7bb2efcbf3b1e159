// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/spillwaylog/spillway/cmd/internal/merge"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/lines"
	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/ring"
)

// A mergeDir reads the events of a directory as lines: of a ring, of all rings in it, of a journal,
// a data directory, or all spills in a logger's Dir. Nothing is changed, whether it is in use or
// not.
type mergeDir struct {
	keys    lines.Options
	encoder *lines.Encoder
	printer recordPrinter
	line    []byte
	yield   merge.Yield
	failed  error // of yield, which ends all
}

// events gives the events of a directory, in any order. What is wrong with one ring costs nothing
// of the others.
func (d *mergeDir) events(dir string, yield merge.Yield) error {
	var err error
	if d.encoder, err = lines.NewEncoder(&d.keys); err != nil {
		return err
	}
	d.yield, d.failed = yield, nil
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range list { // one by one, since each is in memory as a whole
		if !e.IsDir() {
			continue
		}
		is, bad := d.rings(filepath.Join(dir, e.Name()))
		if d.failed != nil {
			return d.failed
		}
		found = found || is
		if is || !errors.Is(bad, fs.ErrPermission) && !errors.Is(bad, fs.ErrNotExist) { // of others, or gone
			err = errors.Join(err, bad)
		}
	}
	if found {
		return err
	}
	if found, bad := d.rings(dir); found || bad != nil {
		return errors.Join(err, bad)
	}
	journals := journalDir{dir}.spills()
	if len(journals) == 0 {
		journals = []journalDir{{dir}}
	}
	for _, one := range journals {
		i, bad := one.inspect()
		if bad == nil {
			bad = d.journal(i)
		}
		if err = errors.Join(err, bad); d.failed != nil {
			break
		}
	}
	return err
}

// rings gives the events of the rings in a folder; found says that there are some.
func (d *mergeDir) rings(dir string) (found bool, err error) {
	all, err := ring.Inspect(dir)
	if errors.Is(err, ring.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	broken := uint64(0)
	for _, i := range all {
		if i.Err != nil {
			err = errors.Join(err, fmt.Errorf("%q: %w", i.Path, i.Err))
		}
		i.AllRecords(func(r ring.Record) bool {
			tag, entry, bad := ringEvent(r)
			if bad != nil {
				broken++
				return true
			}
			return d.event(tag, entry) == nil
		})
		if d.failed != nil {
			return true, d.failed
		}
		if !i.Live { // what is in use changes while it is read
			broken += i.Lost.Regions
		}
	}
	return true, errors.Join(err, unreadable(broken))
}

// unreadable is the error that so many records cannot be read; nil: all can.
func unreadable(records uint64) error {
	if records == 0 {
		return nil
	}
	return fmt.Errorf("%d records cannot be read", records)
}

func (d *mergeDir) journal(i *journal.Inspection) error {
	broken := uint64(0)
	for _, g := range i.Segments {
		broken += uint64(len(g.Damage))
		if g.Err != nil {
			broken++
		}
	}
	err := i.Records(func(r journal.Record) bool {
		if bad, _ := d.printer.events(r, d.event); bad {
			broken++
		}
		return d.failed == nil
	})
	return errors.Join(d.failed, err, unreadable(broken))
}

func (d *mergeDir) event(tag string, e forward.Entry) error {
	d.line = d.encoder.AppendLine(d.line[:0], tag, e)
	d.failed = d.yield(nanosOf(e), d.line[:len(d.line)-1])
	return d.failed
}

// nanosOf is the time of an entry, or the nearest that fits.
func nanosOf(e forward.Entry) int64 {
	switch limit := int64(math.MaxInt64/1_000_000_000 - 5); {
	case e.Sec > limit:
		return math.MaxInt64
	case e.Sec < -limit:
		return math.MinInt64
	}
	return e.Sec*1_000_000_000 + int64(e.Nsec)
}
