// SPDX-License-Identifier: Apache-2.0

package output

import (
	"math"

	"github.com/spillwaylog/spillway/forward"
)

// A ticket is what comes with a chunk.
type ticket struct {
	chunk  *forward.Chunk
	long   *forward.Long // the one event of the chunk; nil: it has entries
	place  []byte        // the token of SubmitAt
	origin int           // of SubmitFrom
}

// A job is a chunk that waits.
type job struct {
	ticket
	done     func(Result)
	seq      uint64
	round    uint64 // in which it was last offered
	offered  bool   // the handler has it
	held     bool   // the writer has it
	taken    bool   // the handler took it
	begun    bool   // lines of it may be written
	repeated bool   // lines of it may be written twice

	rest     []byte // the sink's: entries that are not yet rendered
	entry    int    // the index of the first of them
	rendered bool
	bytes    int64 // of lines
	soon     bool  // see Result.Soon
	rejected []Rejected
	diverted int64 // see Result.Diverted
	torn     int64 // see Result.Torn
}

// render appends the lines of the next entries that are of one second, until dst has limit bytes,
// of one at least, and notes entries that cannot be read.
func (j *job) render(r renderer, dst []byte, limit int, rest []byte) (_ []byte, n int, err error) {
	before, events := len(dst), 0
	dst, n, events, err = appendRun(r, dst, j.chunk.Tag, rest, limit)
	j.bytes += int64(len(dst) - before)
	j.entry += events
	if err == nil {
		return dst, n, nil
	}
	for ; j.entry < j.chunk.Events; j.entry++ {
		j.rejected = append(j.rejected, Rejected{Entry: j.entry, Err: err})
	}
	return dst, n, err
}

// lines is how many lines were made.
func (j *job) lines() int64 { return int64(j.entry - len(j.rejected)) }

// size is how long the job's entries are.
func (j *job) size() int {
	if j.long != nil {
		return int(min(j.long.Size(), math.MaxInt32))
	}
	return len(j.chunk.Entries)
}

// restart has the job rendered again.
func (j *job) restart() {
	j.rest, j.entry, j.rendered, j.bytes, j.rejected, j.diverted = j.chunk.Entries, 0, false, 0, nil, 0
}

// maxFree is how many jobs are kept for later chunks.
const maxFree = 1024

func (q *sinkQueue) newJobLocked(t ticket, done func(Result)) *job {
	var j *job
	if n := len(q.free); n > 0 {
		j, q.free = q.free[n-1], q.free[:n-1]
	} else {
		j = new(job)
	}
	t.place = append(j.place[:0], t.place...)
	*j = job{ticket: t, done: done, rest: t.chunk.Entries, seq: q.seq}
	return j
}

// recycle keeps jobs that are done.
func (q *sinkQueue) recycle(group []*job) {
	for _, j := range group {
		*j = job{ticket: ticket{place: j.place[:0]}}
	}
	q.mu.Lock()
	q.free = append(q.free, group[:min(len(group), maxFree-len(q.free))]...)
	q.mu.Unlock()
}
