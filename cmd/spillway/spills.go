// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spillwaylog/spillway/internal/letters"
)

// journalDir is the directory of a journal or of dead letters, or the data directory that has them
// in it; or a logger's, with its spills; or a ring's, or that of all rings. It may be in use.
type journalDir struct {
	Dir string `arg:"" help:"Data directory, or the directory of the journal or of the dead letters in it; or a logger's Dir, or a spill in it; or a directory of rings, or of one. It may be in use." type:"existingdir"`
}

// spills are the directories in a logger's Dir that hold a journal each, as the notes about their
// owners tell; none: it is no such directory, or has none now.
func (d journalDir) spills() (dirs []journalDir) {
	list, _ := os.ReadDir(d.Dir) // who reads it as a journal tells what is wrong
	for _, e := range list {
		if dir := filepath.Join(d.Dir, e.Name()); e.IsDir() && isFile(filepath.Join(dir, "owner.json")) {
			dirs = append(dirs, journalDir{dir})
		}
	}
	return dirs
}

// each looks into each spill of a logger's Dir, says before it which that is, and then looks into
// the dead letters there; into any other directory it looks once.
func (d journalDir) each(said io.Writer, look func(journalDir) error) error {
	spills := d.spills()
	if len(spills) == 0 {
		return look(d)
	}
	var errs []error
	for _, spill := range spills {
		if _, err := fmt.Fprintf(said, "%s:\n", spill.Dir); err != nil {
			return err
		}
		errs = append(errs, look(spill))
	}
	if _, ok := letters.Find(d.Dir); ok {
		errs = append(errs, look(d))
	}
	return errors.Join(errs...)
}
