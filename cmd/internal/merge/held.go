// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"container/heap"
	"math"
	"time"
)

// held are the lines that wait for earlier ones.
type held struct {
	lines heldLines
	bytes int
	max   int64 // the latest time of all that came
	any   bool
}

type heldLine struct {
	time   int64
	n      int // the place of the file
	number int // of the line
	text   []byte
}

const heldSize = 64 // about what a line costs besides its text, in bytes

func (h *held) push(e *entry) {
	heap.Push(&h.lines, heldLine{e.time, e.n, e.file.number, bytes.Clone(e.file.line)})
	h.bytes += len(e.file.line) + heldSize
	if !h.any || e.time > h.max {
		h.max, h.any = e.time, true
	}
}

func (h *held) pop() heldLine {
	l := heap.Pop(&h.lines).(heldLine)
	h.bytes -= len(l.text) + heldSize
	return l
}

// passed reports that no line that is still to come can be before the first one.
func (h *held) passed(slack time.Duration) bool {
	limit := h.max - int64(slack)
	if limit > h.max { // beyond the smallest number
		limit = math.MinInt64
	}
	return h.lines[0].time < limit
}

type heldLines []heldLine

func (h heldLines) Len() int      { return len(h) }
func (h heldLines) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h heldLines) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.time != b.time:
		return a.time < b.time
	case a.n != b.n:
		return a.n < b.n
	}
	return a.number < b.number
}

func (h *heldLines) Push(x any) { *h = append(*h, x.(heldLine)) }

func (h *heldLines) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = heldLine{}
	*h = old[:last]
	return l
}
