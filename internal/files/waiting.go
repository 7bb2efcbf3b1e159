// SPDX-License-Identifier: Apache-2.0

package files

import "bytes"

// waiting are the lines that wait to be written, each with the file that it is for.
type waiting struct {
	files    []*file // that have lines, in the order in which they got the first
	bytes    int     // of all lines, and fileCost for each file
	spare    [][]byte
	buffer   int // Options.Buffer
	memory   int // Options.Memory
	maxFiles int // files
}

// fileCost is what a file with waiting lines counts besides them.
const fileCost = 1 << 10

// extend has render append lines to what waits for f, and reports whether enough waits.
func (w *waiting) extend(f *file, render func(dst []byte) []byte) (full bool) {
	w.begin(f)
	n := len(f.lines)
	f.lines = render(f.lines)
	if n = len(f.lines) - n; n == 0 && len(f.lines) == 0 {
		w.bytes -= fileCost
	}
	w.bytes += n
	return len(f.lines) >= w.buffer || w.bytes >= w.memory || len(w.files) >= w.maxFiles
}

// keep copies lines to those that wait for f.
func (w *waiting) keep(f *file, lines []byte) {
	w.begin(f)
	f.lines = append(f.lines, lines...)
	w.bytes += len(lines)
}

// begin makes f one of those that lines wait for.
func (w *waiting) begin(f *file) {
	if len(f.lines) == 0 {
		w.bytes += fileCost
		if n := len(w.spare); n > 0 && cap(f.lines) == 0 {
			f.lines = w.spare[n-1]
			w.spare = w.spare[:n-1]
		}
	}
	if !f.queued {
		f.queued = true
		w.files = append(w.files, f)
	}
}

// drop forgets the lines that wait, but for the rest of one that is in a file in part.
func (w *waiting) drop() {
	for _, f := range w.files {
		keep := 0
		if f.torn > 0 {
			keep = bytes.IndexByte(f.lines, '\n') + 1
		}
		if n := len(f.lines) - keep; n > 0 {
			w.takenEnd(f, n)
		}
	}
}

// taken forgets the first n bytes of what waits for f.
func (w *waiting) taken(f *file, n int) {
	if n == 0 {
		return
	}
	f.lines = f.lines[:copy(f.lines, f.lines[n:])]
	w.less(f, n)
}

// takenEnd forgets the last n bytes.
func (w *waiting) takenEnd(f *file, n int) {
	f.lines = f.lines[:len(f.lines)-n]
	w.less(f, n)
}

func (w *waiting) less(f *file, n int) {
	w.bytes -= n
	if len(f.lines) > 0 {
		return
	}
	w.bytes -= fileCost
	if cap(f.lines) <= 2*w.buffer && len(w.spare) < w.memory/w.buffer {
		w.spare = append(w.spare, f.lines[:0])
	}
	f.lines = nil
}
