// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/ring"
)

// Owners returns the processes that have a ring in the folder shm or a spill in the folder dir,
// living or dead, whatever their name. Made is zero where the ring or spill is for another
// destination than that of identity. Either folder may be empty. What can never be adopted is left
// out.
func Owners(shm, dir, identity string) ([]output.Process, error) {
	process := func(pid int, made time.Time, its []byte, dead bool) output.Process {
		if destination, _, _ := strings.Cut(string(its), "\x00"); destination != identity {
			made = time.Time{}
		}
		return output.Process{PID: pid, Made: made, Dead: dead}
	}
	rings, names, err := ringOwners(shm)
	if err != nil {
		return nil, fmt.Errorf("looking for rings: %w", err)
	}
	spills, err := spill.Owners(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for spills: %w", err)
	}
	var all []output.Process
	for _, o := range rings {
		all = append(all, process(o.PID, o.Made, o.Identity, false))
	}
	for _, o := range spills {
		all = append(all, process(o.PID, o.Made, o.Identity, o.Ring != "" && !names[o.Ring]))
	}
	return all, nil
}

// ringOwners returns the owners of the rings in a folder, and the names of all rings there.
func ringOwners(shm string) (all []ring.Owner, names map[string]bool, err error) {
	names = map[string]bool{}
	if shm == "" {
		return nil, names, nil
	}
	d, err := ring.OpenDir(shm)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, names, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	list, err := d.Names(0)
	if err != nil {
		return nil, nil, err
	}
	unlocked := func(ring.Owner) bool { return false } // a successor that comes this moment must not find it locked
	for _, name := range list {
		names[name] = true
		o, _, err := d.Look(name, unlocked)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ring.ErrCorrupt), errors.Is(err, ring.ErrUnsafe):
		case err != nil:
			return nil, nil, err
		default:
			all = append(all, o)
		}
	}
	return all, names, nil
}
