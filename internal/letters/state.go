// SPDX-License-Identifier: Apache-2.0

package letters

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"github.com/spillwaylog/spillway/journal"
	"github.com/spillwaylog/spillway/msgpack"
)

const (
	maxRecent = 2048 // keys of letters that went
	maxKept   = 4096 // letters that stay though their output's mark has passed them
)

// state says which letters are gone, and is committed with the cursor. The picture is in doc.go.
type state struct {
	store  key // the store's identity, random
	cursor journal.Position
	marks  map[string]journal.Position // by output
	kept   []journal.Position          // ascending
	recent []key                       // of the letters that went last, the oldest first
}

func newState() state {
	s := state{marks: map[string]journal.Position{}}
	_, _ = rand.Read(s.store[:]) // never fails, see crypto/rand
	return s
}

// gone says whether a letter was taken out or dropped.
func (s *state) gone(output string, p journal.Position) bool {
	if p <= s.cursor {
		return true
	}
	if p > s.marks[output] {
		return false
	}
	_, stays := slices.BinarySearch(s.kept, p)
	return !stays
}

// remember notes a key of a letter that goes.
func (s *state) remember(k key) {
	if len(s.recent) >= maxRecent {
		s.recent = slices.Delete(s.recent, 0, len(s.recent)-maxRecent+1)
	}
	s.recent = append(s.recent, k)
}

// advance moves the cursor: what it has passed needs no marks.
func (s *state) advance(p journal.Position) {
	s.cursor = p
	maps.DeleteFunc(s.marks, func(_ string, mark journal.Position) bool { return mark <= p })
	n, found := slices.BinarySearch(s.kept, p)
	if found {
		n++
	}
	s.kept = slices.Delete(s.kept, 0, n)
}

// keep notes that a letter stays; false: there are too many such.
func (s *state) keep(p journal.Position) bool {
	i, found := slices.BinarySearch(s.kept, p)
	if !found {
		if len(s.kept) >= maxKept {
			return false
		}
		s.kept = slices.Insert(s.kept, i, p)
	}
	return true
}

// unkeep notes that a letter that stayed is gone.
func (s *state) unkeep(p journal.Position) {
	if i, found := slices.BinarySearch(s.kept, p); found {
		s.kept = slices.Delete(s.kept, i, i+1)
	}
}

// append appends the state as it is committed.
func (s *state) append(b []byte) []byte {
	b = msgpack.AppendMapHeader(b, 4)
	b = msgpack.AppendString(b, "store")
	b = msgpack.AppendBin(b, s.store[:])
	b = msgpack.AppendString(b, "marks")
	b = msgpack.AppendMapHeader(b, len(s.marks))
	for _, output := range slices.Sorted(maps.Keys(s.marks)) {
		b = msgpack.AppendString(b, output)
		b = msgpack.AppendUint(b, uint64(s.marks[output]))
	}
	b = msgpack.AppendString(b, "kept")
	b = msgpack.AppendArrayHeader(b, len(s.kept))
	for _, p := range s.kept {
		b = msgpack.AppendUint(b, uint64(p))
	}
	b = msgpack.AppendString(b, "recent")
	b = msgpack.AppendBinHeader(b, len(s.recent)*len(key{}))
	for _, k := range s.recent {
		b = append(b, k[:]...)
	}
	return b
}

// parseState reads what append wrote.
func parseState(b []byte, cursor journal.Position) (state, error) {
	s := state{cursor: cursor, marks: map[string]journal.Position{}}
	err := eachPair(b, func(name, value []byte) error {
		switch string(name) {
		case "store":
			p, err := readBytes(value)
			if err != nil || len(p) != len(s.store) {
				return errKind
			}
			copy(s.store[:], p)
		case "marks":
			return eachPair(value, func(output, v []byte) error {
				n, err := readUint(v)
				s.marks[string(output)] = journal.Position(n)
				return err
			})
		case "kept":
			return eachElement(value, func(v []byte) error {
				n, err := readUint(v)
				s.kept = append(s.kept, journal.Position(n))
				return err
			})
		case "recent":
			p, err := readBytes(value)
			if err != nil || len(p)%len(key{}) != 0 {
				return errKind
			}
			for k := range slices.Chunk(p, len(key{})) {
				s.recent = append(s.recent, key(k))
			}
		}
		return nil
	})
	if err != nil {
		return state{}, fmt.Errorf("letters: the state of the cursor: %w", err)
	}
	slices.Sort(s.kept)
	s.kept = slices.Compact(s.kept)
	s.advance(cursor)
	return s, nil
}
