// SPDX-License-Identifier: Apache-2.0

package wire

import "sync"

// maxAnew bounds the list, which is in no budget: 16 KiB.
const maxAnew = 1024

// anewEntry is an entry, or several in a row, that cannot stay: one to be left out, or one without
// a time.
type anewEntry struct {
	start, end   uint32 // a chunk is shorter than 2 GiB
	meta, record uint32 // from start; record 0: to be left out; meta 0: none
}

// anewList is pooled: hardly any chunk needs one.
type anewList struct{ entries []anewEntry }

var anewLists = sync.Pool{New: func() any { return new(anewList) }}

// add notes an entry, in order; false: there is no room for it.
func (l *anewList) add(a anewEntry) bool {
	last := len(l.entries) - 1
	if a.record == 0 && last >= 0 && l.entries[last].record == 0 && l.entries[last].end == a.start {
		l.entries[last].end = a.end
		return true
	}
	if len(l.entries) == maxAnew {
		return false
	}
	l.entries = append(l.entries, a)
	return true
}
