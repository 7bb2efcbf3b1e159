// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"slices"
)

// Merge makes one state of several that speak of the same files: those of processes that died, each with the position of
// its own source. Of a path and inode the greatest length counts, for all that stands before it was committed in one of
// them. A state that cannot be read is left out, and is the error.
func Merge(states ...[]byte) ([]byte, error) {
	type key struct {
		path  string
		inode uint64
	}
	var (
		writers []identity
		entries []entry
		errs    []error
	)
	index := map[key]int{}
	for _, state := range states {
		w, es, err := parseState(state)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, e := range es {
			id := identity{}
			if e.writer < len(w) {
				id = w[e.writer]
			}
			e.writer = slices.Index(writers, id)
			if e.writer < 0 {
				if len(writers) == maxWriters {
					continue
				}
				e.writer = len(writers)
				writers = append(writers, id)
			}
			k := key{e.path, e.inode}
			if i, ok := index[k]; !ok {
				index[k] = len(entries)
				entries = append(entries, e)
			} else if entries[i].length < e.length {
				entries[i] = e
			}
		}
	}
	if len(entries) == 0 {
		return nil, errors.Join(errs...)
	}
	return appendState(nil, writers, entries), errors.Join(errs...)
}
