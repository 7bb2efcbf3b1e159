// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"io"
	"math"
	"time"
)

// held are lines that wait for earlier ones, in any order. Those that come in order, nearly all,
// are a queue; the others are a heap; what memory has no room for are runs.
type held struct {
	spool *spool
	limit int // bytes in memory
	queue heldQueue
	lines heldLines
	bytes int
	runs  entries
	taken heldLine // the one that is being written
	max   int64    // the latest time of all that came
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
	l := heldLine{time, n, number, bytes.Clone(text)}
	if !h.queue.push(&l) {
		h.lines.push(&l)
	}
	h.bytes += len(text) + heldSize
	if !h.any || time > h.max {
		h.max, h.any = time, true
	}
	if h.bytes <= h.limit {
		return nil
	}
	return h.spill()
}

// first is the first line in memory; nil: there is none.
func (h *held) first() *heldLine {
	l := h.queue.first()
	if len(h.lines) > 0 && (l == nil || h.lines[0].before(l)) {
		l = &h.lines[0]
	}
	return l
}

// pop takes the first line in memory.
func (h *held) pop() (l heldLine) {
	if f := h.queue.first(); f != nil && (len(h.lines) == 0 || f.before(&h.lines[0])) {
		l = h.queue.pop()
	} else {
		l = h.lines.pop()
	}
	h.bytes -= len(l.text) + heldSize
	return l
}

func (h *held) empty() bool { return h.first() == nil && len(h.runs) == 0 }

// passed reports that no line that is still to come can be before the first one.
func (h *held) passed(slack time.Duration) bool {
	limit := h.max - int64(slack)
	if limit > h.max { // beyond the smallest number
		limit = math.MinInt64
	}
	return h.before(limit)
}

// before reports that the first line is earlier than a time.
func (h *held) before(limit int64) bool {
	l := h.first()
	return l != nil && l.time < limit || len(h.runs) > 0 && h.runs[0].time < limit
}

// release gives the first line to write.
func (h *held) release(write func(l *heldLine) error) error {
	inRun := len(h.runs) > 0
	if l := h.first(); inRun && l != nil {
		r := h.runs[0].line()
		inRun = r.before(l)
	}
	if !inRun {
		h.taken = h.pop()
		return write(&h.taken)
	}
	h.taken = h.runs[0].line()
	if err := write(&h.taken); err != nil {
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
	for h.first() != nil {
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
	f.base = min(f.base, max(h.limit/maxRuns, minBuffer)) // together they have as much as the lines
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
		if err := h.release(func(l *heldLine) error { return w.add(l.time, l.n, l.number, l.text) }); err != nil {
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

// A heldQueue has lines in order.
type heldQueue struct {
	lines []heldLine
	at    int // what is before that was taken
}

// push takes a line; false if it is before the last one.
func (q *heldQueue) push(l *heldLine) bool {
	if q.at == len(q.lines) {
		q.lines, q.at = q.lines[:0], 0
	} else if l.before(&q.lines[len(q.lines)-1]) {
		return false
	}
	if len(q.lines) == cap(q.lines) && q.at > len(q.lines)/2 {
		n := copy(q.lines, q.lines[q.at:])
		clear(q.lines[n:])
		q.lines, q.at = q.lines[:n], 0
	}
	q.lines = append(q.lines, *l)
	return true
}

func (q *heldQueue) first() *heldLine {
	if q.at == len(q.lines) {
		return nil
	}
	return &q.lines[q.at]
}

func (q *heldQueue) pop() heldLine {
	l := q.lines[q.at]
	q.lines[q.at] = heldLine{}
	q.at++
	return l
}

// heldLines are a heap.
type heldLines []heldLine

func (h *heldLines) push(l *heldLine) {
	*h = append(*h, *l)
	a := *h
	for i := len(a) - 1; i > 0; {
		above := (i - 1) / 2
		if !a[i].before(&a[above]) {
			return
		}
		a[i], a[above] = a[above], a[i]
		i = above
	}
}

func (h *heldLines) pop() heldLine {
	a := *h
	l, last := a[0], len(a)-1
	a[0], a[last] = a[last], heldLine{}
	a = a[:last]
	*h = a
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			return l
		}
		if c+1 < last && a[c+1].before(&a[c]) {
			c++
		}
		if !a[c].before(&a[i]) {
			return l
		}
		a[i], a[c] = a[c], a[i]
		i = c
	}
}

// line is that of a run, valid until its next one.
func (e *entry) line() heldLine {
	return heldLine{e.time, e.n, e.file.number, e.file.line}
}
