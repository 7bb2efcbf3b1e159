// SPDX-License-Identifier: Apache-2.0

package ring

// reader is what hands out records: by merge of a ring that takes appends, by rescue of one that
// does not, or failed. The reader's goroutine alone has it.
type reader struct {
	merge
	rescue *rescue
}

// Next returns the next record in the order of (Key, Lane). ok is false when there is none yet: a
// record whose turn is not certain becomes visible later, never out of turn. Of an adopted ring it
// returns the records that are whole and not done, and counts the rest: see [Ring.Lost]; ok is
// false at the end. Of a ring that failed it goes on with what can still be read, then ok is false
// and the error wraps [ErrFailed].
//
// Next, Guard, Copy, Sleep, Rewind, Close and Leave are for one goroutine, the reader.
func (r *reader) Next() (rec Record, ok bool, err error) {
	for {
		if r.rescue != nil {
			rec, ok = r.rescue.next()
			if ok {
				r.returned++
				r.returnedBytes += uint64(len(rec.Data))
				return rec, true, nil
			}
			return Record{}, false, r.life.Failed()
		}
		if r.life.over.Load() == overFailed {
			r.startRescue()
			continue
		}
		i := r.pick()
		if i < 0 {
			if err := r.sync(); err != nil {
				continue
			}
			if i = r.pick(); i < 0 {
				return Record{}, false, nil
			}
		}
		if err := r.memory.touch(func() { rec, err = r.read(i) }); err != nil {
			_ = r.life.fail(err)
			continue
		}
		if err != nil {
			_ = r.life.fail(err)
			continue
		}
		return rec, true, nil
	}
}

// Sleep announces that the reader is going to sleep: from now on the first Append calls wake, once.
// With ready=true there is something to be read already, and wake is not called for it.
// (ready=false while there are records whose turn is not certain: the appender that makes it so
// calls wake when it is done.) Of an adopted ring, and of one that failed, ready says that not
// everything was read.
func (r *reader) Sleep() (ready bool) {
	if r.rescue != nil || r.life.over.Load() == overFailed {
		return !r.Drained()
	}
	r.life.sawBusy.Store(0)
	r.life.asleep.Store(1)
	for {
		switch {
		case r.sync() != nil || r.pick() >= 0:
			r.life.asleep.Store(0)
			return true
		case !r.anyBusy():
			if len(r.ready) == 0 {
				return false
			}
			// There are records, none of which was appended before the clock's present reading.
		case r.life.sawBusy.Load() != 0:
			return false // the holder of the lane calls wake
		default:
			r.life.sawBusy.Store(1) // and look again, for he may have let go before this
		}
	}
}

// startRescue ends appending and lets Next go on with what was not yet read, checking everything.
func (r *reader) startRescue() {
	r.lanes.seal()
	r.rescue = r.unread()
}

// startAdopted lets Next read the segments that the dead owner left.
func (r *reader) startAdopted() {
	q, units := left(&r.retired.notes)
	r.rescue = q
	r.segments.left.Store(units)
}

// Drained says that Next has returned all there will ever be.
func (r *reader) Drained() bool {
	if r.rescue == nil && r.life.over.Load() == overFailed {
		r.startRescue()
	}
	if r.rescue == nil {
		return false
	}
	_, more := r.rescue.peek()
	return !more
}

// Lost is what was found to be unreadable: of an adopted ring, so far; of a ring that failed under
// this process, once Next has come to the end.
func (r *reader) Lost() Loss {
	if r.rescue == nil {
		return Loss{}
	}
	loss := r.rescue.loss
	if r.segments.pool != nil {
		if !r.Drained() {
			return Loss{}
		}
		loss = r.rescue.loss
		records, bytes := r.lanes.Appended()
		loss.Records, loss.Bytes = records-r.returned, bytes-r.returnedBytes
	}
	return loss
}

// Rewind starts Next of an adopted ring over from the oldest record that is not done. Other rings
// it leaves alone.
func (r *reader) Rewind() {
	if r.segments.pool == nil && r.memory.mem != nil {
		r.startAdopted()
	}
}

// Guard runs fn, which reads [Record.Data], and turns a fault of the memory, which would end the
// process, into an error that wraps [ErrFailed]. fn must hold no lock and call nothing that cannot
// be broken off in the middle.
func (r *reader) Guard(fn func()) error {
	if err := r.memory.touch(fn); err != nil {
		return r.life.fail(err)
	}
	return nil
}

// Copy appends the data of one record to dst, or returns an error that wraps [ErrFailed], and dst
// as it was.
func (r *reader) Copy(dst []byte, rec Record) ([]byte, error) {
	n := len(dst)
	err := r.Guard(func() { dst = append(dst, rec.Data...) })
	if err != nil {
		return dst[:n], err
	}
	return dst, nil
}
