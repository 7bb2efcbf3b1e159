// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"sync"
	"time"
)

// A Failure is something that does not work at present and is tried again.
type Failure struct {
	Since time.Time
	Tries int           // that failed
	Pause time.Duration // before the next try
	Err   error         // of the last try
}

// remindEvery is how often a failure that lasts is told again.
const remindEvery = time.Minute

// failing keeps the failure of one thing while it lasts, and says when to tell it: at once, and
// then once a minute. Several goroutines may use it.
type failing struct {
	mu   sync.Mutex
	f    Failure // Tries is 0 while the thing works
	told time.Time
	well time.Time // when it worked first after the last try that failed
}

// settleAfter is how long a thing has to work that many use before its failure counts as over:
// while it is nearly full, a journal takes a little now and then.
const settleAfter = 5 * time.Second

// fail notes a try that failed.
func (s *failing) fail(err error, pause time.Duration) (f Failure, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.f.Tries == 0 {
		s.f.Since, tell = now, true
	}
	s.f.Tries++
	s.f.Pause, s.f.Err, s.well = pause, err, time.Time{}
	if tell = tell || now.Sub(s.told) >= remindEvery; tell {
		s.told = now
	}
	return s.f, tell
}

// over notes that the thing works, and returns the failure that has ended; nil if there was none.
func (s *failing) over() *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overLocked()
}

func (s *failing) overLocked() *Failure {
	if s.f.Tries == 0 {
		return nil
	}
	f := s.f
	s.f, s.well = Failure{}, time.Time{}
	return &f
}

// works notes that a try did not fail. The failure is over when no other fails for a while, see
// settled.
func (s *failing) works() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f.Tries > 0 && s.well.IsZero() {
		s.well = time.Now()
	}
}

// settled returns a failure that has been over for settleAfter, and forgets it.
func (s *failing) settled() *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.well.IsZero() || time.Since(s.well) < settleAfter {
		return nil
	}
	return s.overLocked()
}

// current returns a copy of the failure, nil if there is none.
func (s *failing) current() *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f.Tries == 0 {
		return nil
	}
	f := s.f
	return &f
}
