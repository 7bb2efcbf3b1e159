// SPDX-License-Identifier: Apache-2.0

package files

import "time"

// Sync writes all that waits, makes it durable, and returns the state to be committed, in one piece
// with the position up to which lines were appended, before the next Write.
func (s *Set) Sync() ([]byte, error) {
	if s.sharer != nil {
		if err := s.usable(); err != nil {
			return nil, err
		}
		return s.sharer.sync()
	}
	if err := s.Write(); err != nil {
		return nil, err
	}
	if err := s.handles.syncAll(); err != nil {
		return nil, err
	}
	for _, f := range s.recorder.settle(s.handles.now) {
		s.rotator.dismiss(f)
	}
	if s.index.crowd.turn(s.handles.now) {
		s.o.Report(s.index.crowded())
	}
	return s.recorder.settled(), nil
}

// State returns what is to be committed if the position is here, behind all that was appended, and
// nothing waits to be written. It settles nothing, makes nothing durable and may be called often: a
// Sync with nothing written in between returns the same, but for files that it closes or rotates
// because their time has come.
func (s *Set) State() []byte {
	if s.sharer != nil {
		return s.sharer.state(s.index.crowd.closed)
	}
	return s.recorder.state(time.Now())
}

// WantSync reports that a Sync and a commit should come soon: the state has grown, because many
// files were opened since the last; or what was written since would be written again after a crash,
// because a file was moved away, or because others had written where lines were expected.
func (s *Set) WantSync() bool {
	return s.recorder.hasty || len(s.index.files)-s.handles.n > 4*s.o.MaxOpen
}

// Crowded says that so many files were written since the last commit that a Checkpoint should come
// before the next event: a state names all of them. That is twice as many as WantSync waits for. So
// is it when files were moved away or cut meanwhile: what was written since would be written again
// after a crash.
func (s *Set) Crowded() bool {
	return s.recorder.hasty || s.recorder.unkept || len(s.index.files)-s.handles.n > 8*s.o.MaxOpen
}

// Checkpoint is a Sync whose state belongs to a Point, behind the position, and has Record make it
// durable. After an error it is called again, before anything else.
func (s *Set) Checkpoint(p Point) error {
	if _, err := s.Sync(); err != nil {
		return err
	}
	return s.recorder.checkpoint(p)
}

// Resumed returns the Point of the state that the Set was opened with, until Reached. Events up to
// it are not to be appended again.
func (s *Set) Resumed() Point { return s.recorder.resumed }

// Reached says that the next event is behind the Point. Until then all states have it.
func (s *Set) Reached() { s.recorder.resumed = Point{} }

// Checkpoints says whether the caller can make a Checkpoint now. Without that Extend never returns
// ErrCrowded: what comes until the next Sync may make more new files.
func (s *Set) Checkpoints(can bool) { s.index.crowd.checkpoints = can }
