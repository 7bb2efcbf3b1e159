// SPDX-License-Identifier: Apache-2.0

package merge

// An entry is a file in a heap, by the line that it has taken.
type entry struct {
	time int64
	n    int // the place of the line's file
	file *input
}

func (e *entry) before(o *entry) bool {
	if e.time != o.time {
		return e.time < o.time
	}
	return e.n < o.n || e.n == o.n && e.file.number < o.file.number
}

// entries are a heap. Not container/heap: this one is the merge's inner loop.
type entries []entry

// order makes a heap of what is in any order.
func (h entries) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// down moves an entry to its place.
func (h entries) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// remove takes the first one away.
func (h *entries) remove() {
	last := len(*h) - 1
	(*h)[0] = (*h)[last]
	(*h)[last] = entry{}
	*h = (*h)[:last]
	h.down(0)
}
