// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spillwaylog/spillway/internal/codes"
)

// CanLock says whether there is SharedLock on this system.
const CanLock = canWait

// A sharer is what a Set has in place of a recorder and a finder where files are shared. Lines of
// others stand between its own, so nothing is compared with what stands in the file. Before each
// write a state says of which stretches of lines the batch is made, and where it may stand. So an
// successor, whose lines come again in the same order, knows all batches but the last to be in the
// file, and looks for that one alone:
//
//	                  state ─┐                    ┌─ kill
//	── chunk ── chunk ── chunk ── chunk ── chunk ── ─ ─
//	       batch      │    batch    │ batch?│
//	──────────────────┴─────────────┴───────┴──────────  stretches: of one chunk and one batch
//
// A chunk ends where a stretch does, so a successor that gets one chunk at a time can say of each
// whether its lines stand in the file.
type sharer struct {
	o       *Options
	index   *index
	waiting *waiting
	handles *handles
	rotator *rotator

	number uint64 // of the last state
	left   []namedLot
	parted []*file // that got lines of a chunk that has not ended
	buf    []byte
	torn   int64
}

func newSharer(s *Set, last *sharedState) *sharer {
	return &sharer{
		o: &s.o, index: &s.index, waiting: &s.waiting, handles: &s.handles, rotator: &s.rotator,
		number: last.number, left: last.lots,
	}
}

// extended notes that lines of the present chunk wait for f.
func (s *sharer) extended(f *file) {
	if f.lot == nil {
		f.lot = &lot{}
		if i := slices.IndexFunc(s.left, func(x namedLot) bool { return x.path == f.path }); i >= 0 {
			f.lot = s.left[i].lot
			s.left = slices.Delete(s.left, i, i+1)
		}
	}
	if !f.lot.fresh {
		f.lot.fresh = true
		s.parted = append(s.parted, f)
	}
}

// cut ends the present chunk.
func (s *sharer) cut() {
	for _, f := range s.parted {
		l := f.lot
		l.fresh = false
		if n := len(f.lines); n > 0 && (len(l.ends) == 0 || l.ends[len(l.ends)-1] < n) {
			l.ends = append(l.ends, n)
		}
	}
	clear(s.parted)
	s.parted = s.parted[:0]
}

// write hands what waits to the kernel, but for lines of which not enough have come to say whether
// they stand in the file. all says that no more come before the next position.
func (s *sharer) write(all bool) (first error) {
	s.handles.now = time.Now()
	s.rotator.tendLeft()
	queue := s.waiting.files
	idle := len(queue) == 0
	s.waiting.files = nil
	for _, f := range queue {
		if err := s.writeFile(f, all); err != nil && first == nil {
			first = err
		}
		if len(f.lines) == 0 {
			f.queued = false
		} else {
			s.waiting.files = append(s.waiting.files, f)
		}
	}
	if idle {
		s.rest()
	}
	if err := s.handles.closeIdle(); err != nil && first == nil {
		first = err
	}
	return first
}

func (s *sharer) writeFile(f *file, all bool) error {
	if waits, err := s.meet(f, all); waits || err != nil {
		return err
	}
	for len(f.lines) > 0 {
		write := s.append
		if s.o.Shared == SharedLock {
			write = s.appendAlone
		}
		if err := write(f); err != nil {
			return err
		}
	}
	return nil
}

// meet takes away lines that wait and stand in the file already. It reports whether more have to
// come before that can be said.
func (s *sharer) meet(f *file, all bool) (waits bool, err error) {
	for l := f.lot; l.met < len(l.stretches) && len(f.lines) > 0; l.met++ {
		x := l.stretches[l.met]
		if len(f.lines) < x.size && !all {
			return true, nil
		}
		if len(f.lines) < x.size || stretchOf(f.lines[:x.size]) != x {
			s.o.Report(codes.FileTwice.Errorf("files: %s: other lines come again than were written; they may be in it twice", f.path))
			l.forget()
			return false, nil
		}
		if l.met == len(l.stretches)-l.doubt {
			there, err := s.stands(f)
			if err != nil {
				return false, err
			}
			if !there {
				l.forget()
				return false, nil
			}
			l.doubt = 0
		}
		s.taken(f, x.size)
	}
	return false, nil
}

// stands reports whether the batch that is in doubt is in the file. Its first stretch waits.
func (s *sharer) stands(f *file) (there bool, err error) {
	if s.o.Shared == SharedLock {
		err = s.alone(f, func(l *latch) error {
			err := s.settled(f, l) // which says what cannot be completed
			there = l.has(f.lot.place)
			return err
		})
		return there, err
	}
	return s.o.Distinct != "" && bytes.HasPrefix(f.lines, []byte(s.o.Distinct)) && standsIn(f), nil
}

// ready makes the file at the path of f ready to take its lines: open, the same that is at the
// path, rotated if that is due. It returns how long it is.
func (s *sharer) ready(f *file) (size int64, err error) {
	s.handles.now = time.Now() // it may have waited for others: see rotator.due
	for {
		if size, err = s.reach(f); err != nil || !s.rotator.due(f, size) {
			return size, err
		}
		if err := s.rotator.rotate(f); err != nil { // where it cannot, nothing is due for a while
			return 0, err
		}
	}
}

// reach opens the file that is at the path of f, if it is not open.
func (s *sharer) reach(f *file) (size int64, err error) {
	if f.handle != nil {
		if id, now, err := idAt(f.path); err != nil || id != f.id {
			if !s.o.Rotation.on() {
				s.o.Report(codes.FileMoved.Errorf("files: %s was moved away or replaced; going on in a new file",
					f.path))
			}
			if err := s.handles.close(f); err != nil {
				return 0, err
			}
		} else {
			s.handles.touch(f)
			size = now
		}
	}
	if f.handle == nil {
		if err := s.rotator.open(f); err != nil {
			return 0, err
		}
		if size, err = f.handle.Seek(0, io.SeekEnd); err != nil {
			return 0, err
		}
	}
	f.used, f.end = s.handles.now, size
	return size, nil
}

// fitting returns how many bytes of what waits go into one batch, whole lines.
func (s *sharer) fitting(f *file) int {
	if n := s.rotator.fitting(f); n > 0 {
		return n
	}
	return bytes.IndexByte(f.lines, '\n') + 1
}

// rest rotates open files that wait for nothing but whose time has come, and leaves those that
// others rotated.
func (s *sharer) rest() {
	if !s.o.Rotation.on() {
		return
	}
	for f := s.handles.newest; f != nil; {
		next := f.older
		id, size, err := idAt(f.path)
		switch {
		case err != nil || id != f.id:
			err = s.handles.close(f)
		case !s.rotator.due(f, size):
			err = nil
		case s.o.Shared == SharedLock:
			err = s.alone(f, func(l *latch) error {
				if err := s.settled(f, l); err != nil || !s.rotator.due(f, f.end) {
					return err
				}
				return s.rotator.rotate(f)
			})
		default:
			err = s.rotator.rotate(f)
		}
		if err != nil {
			s.o.Report(err)
		}
		f = next
	}
}

func (s *sharer) taken(f *file, n int) {
	s.waiting.taken(f, n)
	f.lot.taken(n)
}

// drop has the lines forgotten that wait: those of their chunks that are in the files come again.
func (s *sharer) drop() {
	for _, f := range s.index.order {
		if f.lot != nil {
			f.lot = &lot{}
		}
	}
	s.left, s.parted = nil, nil
}

// settle makes the present the position, and closes and forgets what needs no state.
func (s *sharer) settle() {
	kept := s.index.order[:0]
	for _, f := range s.index.order {
		if f.lot != nil {
			f.lot.settle()
		}
		if f.handle == nil {
			f.closeLatch()
		}
		if f.handle != nil || len(f.lines) > 0 || f.lot != nil && len(f.lot.stretches) > 0 {
			kept = append(kept, f)
			continue
		}
		s.index.forget(f)
	}
	clear(s.index.order[len(kept):])
	s.index.order, s.index.last = kept, nil
}

// record makes a state durable, before what it says is done.
func (s *sharer) record() error {
	if err := s.o.Record(s.state(s.index.crowd.closed)); err != nil {
		return fmt.Errorf("files: record: %w", err)
	}
	return nil
}

func (s *sharer) state(closed bool) []byte {
	s.number++
	all := sharedState{number: s.number, closed: closed}
	for _, f := range s.index.order {
		if f.lot != nil && len(f.lot.stretches) > 0 {
			all.lots = append(all.lots, namedLot{f.path, f.lot})
		}
	}
	all.lots = append(all.lots, s.left...)
	return appendShared(nil, &all)
}

// sync writes what waits, and returns the state of the position.
func (s *sharer) sync() ([]byte, error) {
	s.cut()
	if err := s.write(true); err != nil {
		return nil, err
	}
	s.settle()
	if s.index.crowd.turn(s.handles.now) {
		s.o.Report(s.index.crowded())
	}
	return s.state(s.index.crowd.closed), nil
}

// Torn returns how many fragments were met in shared files since it was called last.
func (s *Set) Torn() (n int64) {
	if s.sharer != nil {
		n, s.sharer.torn = s.sharer.torn, 0
	}
	return n
}

// Cut says that a chunk ends: what follows may come without it after a crash.
func (s *Set) Cut() {
	if s.sharer != nil {
		s.sharer.cut()
	}
}
