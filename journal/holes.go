// SPDX-License-Identifier: Apache-2.0

package journal

import "sync"

// holes are the places of damage met since Open, so that several readers report and copy one only
// once, and how much it was.
type holes struct {
	mu    sync.Mutex // a leaf
	seen  map[Position]bool
	count uint64
	bytes uint64
	files uint64 // set aside whole
}

func (h *holes) first(p Position) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen[p] {
		return false
	}
	if h.seen == nil {
		h.seen = map[Position]bool{}
	}
	h.seen[p] = true
	return true
}

// counts returns the number of holes, their bytes, and the files set aside whole.
func (h *holes) counts() (holes, bytes, files uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count, h.bytes, h.files
}
