// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"container/heap"
	"io"
	"math"
	"time"
)

// held are lines that wait for earlier ones, in any order. What memory has no room for are runs.
type held struct {
	spool *spool
	most  int // bytes in memory
	lines heldLines
	bytes int
	runs  entries
	max   int64 // the latest time of all that came
	any   bool
}

type heldLine struct {
	time   int64
	n      int // the place of the file
	number int // of the line
	text   []byte
}

const (
	heldSize = 64  // about what a line costs besides its text, in bytes
	maxRuns  = 128 // that are read at once
)

// push takes a line, which is copied.
func (h *held) push(time int64, n, number int, text []byte) error {
	heap.Push(&h.lines, heldLine{time, n, number, bytes.Clone(text)})
	h.bytes += len(text) + heldSize
	if !h.any || time > h.max {
		h.max, h.any = time, true
	}
	if h.bytes <= h.most {
		return nil
	}
	return h.spill()
}

func (h *held) pop() heldLine {
	l := heap.Pop(&h.lines).(heldLine)
	h.bytes -= len(l.text) + heldSize
	return l
}

func (h *held) empty() bool { return len(h.lines)+len(h.runs) == 0 }

// passed reports that no line that is still to come can be before the first one.
func (h *held) passed(slack time.Duration) bool {
	limit := h.max - int64(slack)
	if limit > h.max { // beyond the smallest number
		limit = math.MinInt64
	}
	return len(h.lines) > 0 && h.lines[0].time < limit || len(h.runs) > 0 && h.runs[0].time < limit
}

// release gives the first line to write.
func (h *held) release(write func(l heldLine) error) error {
	if len(h.runs) == 0 || len(h.lines) > 0 && !h.runs[0].line().before(&h.lines[0]) {
		return write(h.pop())
	}
	if err := write(*h.runs[0].line()); err != nil {
		return err
	}
	return h.advance()
}

// advance takes the next line of the first run.
func (h *held) advance() error {
	f := h.runs[0].file
	err := f.record()
	if err == io.EOF { //nolint:errorlint // a part's own is never wrapped
		h.runs.remove()
		return nil
	}
	h.runs[0] = entry{f.time, f.n, f}
	h.runs.down(0)
	return err
}

// spill makes a run of the lines in memory.
func (h *held) spill() error {
	w := h.spool.newRun()
	for len(h.lines) > 0 {
		l := h.pop()
		if err := w.add(l.time, l.n, l.number, l.text); err != nil {
			return err
		}
	}
	f, err := w.end()
	if err != nil {
		return err
	}
	if len(h.runs) >= maxRuns {
		if err := h.join(); err != nil {
			return err
		}
	}
	return h.add(f)
}

func (h *held) add(f *input) error {
	if err := f.record(); err != nil {
		return err
	}
	h.runs = append(h.runs, entry{f.time, f.n, f})
	h.runs.order()
	return nil
}

// join makes one run of all.
func (h *held) join() error {
	f, err := h.run()
	if err != nil {
		return err
	}
	return h.add(f)
}

// run returns all lines as one run.
func (h *held) run() (*input, error) {
	w := h.spool.newRun()
	for !h.empty() {
		if err := h.release(func(l heldLine) error { return w.add(l.time, l.n, l.number, l.text) }); err != nil {
			return nil, err
		}
	}
	return w.end()
}

func (l *heldLine) before(o *heldLine) bool {
	switch {
	case l.time != o.time:
		return l.time < o.time
	case l.n != o.n:
		return l.n < o.n
	}
	return l.number < o.number
}

type heldLines []heldLine

func (h heldLines) Len() int           { return len(h) }
func (h heldLines) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h heldLines) Less(i, j int) bool { return h[i].before(&h[j]) }
func (h *heldLines) Push(x any)        { *h = append(*h, x.(heldLine)) }

func (h *heldLines) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = heldLine{}
	*h = old[:last]
	return l
}
