// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"unicode/utf8"
)

// ErrorField is the field of an event that says which step failed, and why.
const ErrorField = "spillway_error"

// A program is the steps of a route.
type program struct {
	actions  []action
	letters  bool   // events of which a step failed are dead letters
	maxBytes int    // bytes that steps may make of an event
	skip     []bool // none between two events
	now      int    // the step that runs
}

var errorName = newName(ErrorField)

// run has the steps change an event. why is what the first step that failed says: the event is then
// what the others make of it, or a dead letter.
func (p *program) run(e *event) (keep, letter bool, why error) {
	keep, failed := p.attempt(e)
	if failed == nil {
		return keep, false, nil
	}
	clear(p.skip)
	why = failed
	for tag, raw := e.from, e.raw; failed != nil; {
		if p.letters || p.actions[p.now].strict {
			return false, true, failed
		}
		p.skip[p.now] = true
		if _, err := e.read(tag, raw); err != nil {
			return false, true, err
		}
		keep, failed = p.attempt(e)
	}
	clear(p.skip)
	return keep, false, why
}

// attempt runs the steps but for those to be skipped, until one fails. A panic is a failure.
func (p *program) attempt(e *event) (keep bool, failed error) {
	defer func() {
		if r := recover(); r != nil {
			keep, failed = true, fmt.Errorf("%s: panic: %v", p.actions[p.now].kind, r)
		}
	}()
	for i := range p.actions {
		a := &p.actions[i]
		p.now = i
		if p.skip[i] {
			continue
		}
		if a.holds != nil {
			holds := a.holds(e)
			if err := e.failed; err != nil {
				e.failed = nil
				return true, fmt.Errorf("%s: %w", a.kind, err)
			}
			if holds != a.keep {
				return false, nil
			}
		}
		if a.do == nil {
			continue
		}
		err := a.do(e)
		if err == nil {
			err = e.settle()
		}
		if err == nil && e.size() > e.maxBytes {
			err = errTooLarge
		}
		if err != nil {
			return true, fmt.Errorf("%s: %w", a.kind, err)
		}
	}
	return true, nil
}

// maxReason is the longest text about a failure.
const maxReason = 256

// note says in the event why a step failed.
func (e *event) note(why error) {
	text := why.Error()
	if len(text) > maxReason {
		text = text[:maxReason]
		for !utf8.ValidString(text) && len(text) > maxReason-utf8.UTFMax {
			text = text[:len(text)-1]
		}
	}
	_ = e.set(path{errorName}, newName(text).key) // at the top of the record it cannot fail
}

// An action is a step that was understood.
type action struct {
	kind   string
	holds  func(e *event) bool  // of keep, drop, sample, throttle and dedup: whether the event stays, if that is
	keep   bool                 // this
	do     func(e *event) error // of the others; after an error the event is made anew without it
	strict bool                 // no event goes on without it
	memory *memory              // of throttle and dedup
	lookup *looking
}
