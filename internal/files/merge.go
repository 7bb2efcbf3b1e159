// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"slices"
)

// Merge makes one state of several that speak of the same files: those of processes that died, each
// with the position of its own origin. Of a path and inode the greatest length counts, for all that
// stands before it was committed in one of them. The Point is that of the last state: states of
// several origins have none. Of states of shared files, which are those of one process, the last
// counts. A state that cannot be read is left out, and is the error.
func Merge(states ...[]byte) ([]byte, error) {
	if slices.ContainsFunc(states, func(b []byte) bool { return len(b) > 0 && b[0] == stateShared }) {
		return mergeShared(states)
	}
	type key struct {
		path  string
		inode uint64
	}
	var (
		all  state
		errs []error
	)
	index := map[key]int{}
	for _, b := range states {
		s, err := parseState(b)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all.closed, all.point = all.closed || s.closed, s.point
		for _, w := range s.writers {
			if !slices.Contains(all.writers, w) && len(all.writers) < maxWriters {
				all.writers = append(all.writers, w)
			}
		}
		for _, e := range s.entries {
			if e.writer = slices.Index(all.writers, s.writers[e.writer]); e.writer < 0 {
				continue
			}
			k := key{e.path, e.inode}
			if i, ok := index[k]; !ok {
				index[k] = len(all.entries)
				all.entries = append(all.entries, e)
			} else if all.entries[i].length < e.length {
				all.entries[i] = e
			}
		}
	}
	if len(all.entries) == 0 && !all.closed && all.point == (Point{}) {
		return nil, errors.Join(errs...)
	}
	return appendState(nil, &all), errors.Join(errs...)
}
