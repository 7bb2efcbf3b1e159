// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spillwaylog/spillway/internal/output"
	"github.com/spillwaylog/spillway/internal/spill"
	"github.com/spillwaylog/spillway/ring"
)

// Owners returns the processes, living or dead and whatever their name, that have a ring in the
// folder shm or a spill in the folder dir, for the destination of an identity. Either folder may be
// empty. What can never be adopted is left out.
func Owners(shm, dir, identity string) ([]output.Process, error) {
	mine := func(id []byte) bool {
		destination, _, ok := strings.Cut(string(id), "\x00")
		return ok && destination == identity
	}
	all, names, err := ringOwners(shm, mine)
	if err != nil {
		return nil, fmt.Errorf("looking for rings: %w", err)
	}
	spills, err := spill.Owners(dir, mine)
	if err != nil {
		return nil, fmt.Errorf("looking for spills: %w", err)
	}
	for _, o := range spills {
		all = append(all, output.Process{PID: o.PID, Made: o.Made, Dead: o.Ring != "" && !names[o.Ring]})
	}
	return all, nil
}

// ringOwners are those of the rings in a folder, which names has all of.
func ringOwners(shm string, mine func(identity []byte) bool) (all []output.Process, names map[string]bool, err error) {
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
	unlocked := func(ring.Owner) bool { return false } // an heir that comes this moment must not find it locked
	for _, name := range list {
		names[name] = true
		o, _, err := d.Look(name, unlocked)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, ring.ErrCorrupt), errors.Is(err, ring.ErrUnsafe):
		case err != nil:
			return nil, nil, err
		case mine(o.Identity):
			all = append(all, output.Process{PID: o.PID, Made: o.Made})
		}
	}
	return all, names, nil
}
