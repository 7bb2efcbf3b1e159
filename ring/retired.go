// SPDX-License-Identifier: Apache-2.0

package ring

import "sync/atomic"

// retired is the segments that have been read and closed, and are not all done. The reader adds to
// them; a cut or the end of a mark frees them: all under the lock of notes.
type retired struct {
	notes
	segments *segments
	all      []*segment
	due      atomic.Bool // lanes may hold what is done
}

// Clear removes a mark. Its records are done, if a Cut has passed them and no other mark covers
// them.
func (d *retired) Clear(slot int) {
	d.header(func() {
		if !d.marked[slot] {
			return
		}
		d.marked[slot] = false
		d.nmarks--
		d.clearMark(slot)
		d.freeLocked()
	})
}

// Cut says that every record with this key or a lower one is done, unless a mark covers it. A
// segment all of whose records are done is free. What Next has not yet returned must not be cut, or
// it may still come.
func (d *retired) Cut(key uint64) {
	d.header(func() {
		if key <= d.cut {
			return
		}
		d.cut = key
		d.putCut()
		d.freeLocked()
	})
}

// retireLocked notes that the reader has read a closed segment to its end.
func (d *retired) retireLocked(s *segment) {
	if d.doneLocked(s.first, s.last) {
		d.segments.giveBack(s)
		return
	}
	d.all = append(d.all, s)
}

// freeLocked frees what has been read and is done. The marks that count are looked up only once.
func (d *retired) freeLocked() {
	d.due.Store(true)
	if d.segments.missed() { // what an appender waits for may be in lanes, and only the reader can take it from there
		d.segments.wanted.Store(true)
		d.readerDue = true
	}
	if len(d.all) == 0 {
		return
	}
	var spans [MaxMarks][2]uint64
	n := 0
	for i, there := range d.marked {
		if there {
			spans[n] = [2]uint64{d.marks[i].First, d.marks[i].Last}
			n++
		}
	}
	keep := d.all[:0]
	for _, s := range d.all {
		done := s.last <= d.cut
		for _, span := range spans[:n] {
			done = done && (span[0] > s.last || span[1] < s.first)
		}
		if done {
			d.segments.giveBack(s)
		} else {
			keep = append(keep, s)
		}
	}
	clear(d.all[len(keep):])
	d.all = keep
}
