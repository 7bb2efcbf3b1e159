// SPDX-License-Identifier: Apache-2.0

package step

import (
	"errors"
	"fmt"
)

// A Filter chooses events for somebody to look at: by a pattern of tags, and by a condition.
//
// One goroutine at a time calls Takes, and one, which may be another, calls Holds.
type Filter struct {
	tags  *Sifter    // of one route; nil: every tag
	where *condition // nil: every event
	event event
}

// A FilterError is what is wrong with the texts that a Filter is made of.
type FilterError struct {
	Of   string // tag or where
	At   int    // at which byte of that; -1: at all of it
	Text string
}

// Error says where.
func (e *FilterError) Error() string {
	if e.At < 0 {
		return e.Of + ": " + e.Text
	}
	return fmt.Sprintf("%s, at byte %d: %s", e.Of, e.At+1, e.Text)
}

// maxFilter is the longest text of a filter: patterns and conditions are written by people.
const maxFilter = 8 << 10

// ReadFilter understands a pattern as that of Route.Match, and a condition as that of Step.Keep. An
// empty text is everything. The error is a *FilterError.
func ReadFilter(tag, where string, compile Compiler) (*Filter, error) {
	f := &Filter{}
	var err error
	of, text := "tag", tag
	if len(tag) <= maxFilter && tag != "" && tag != "**" {
		var g glob
		g, err = parseGlob(tag)
		f.tags = &Sifter{rules: []rule{{g, everything}}, shares: map[string]*program{}}
	}
	if err == nil && len(tag) <= maxFilter {
		of, text = "where", where
		if len(where) <= maxFilter && where != "" {
			f.where, err = parseCondition(where, compile)
		}
	}
	if len(text) > maxFilter {
		err = fmt.Errorf("it has %d bytes; it may have %d", len(text), maxFilter)
	}
	if err == nil {
		return f, nil
	}
	wrong := &FilterError{Of: of, At: -1, Text: err.Error()}
	if at := (*Fault)(nil); errors.As(err, &at) {
		wrong.At = at.At
	}
	return nil, wrong
}

// Takes says whether events with a tag are of interest.
func (f *Filter) Takes(tag string) bool { return f.tags == nil || f.tags.Takes(tag) != None }

// Everything says whether all events with a tag that it takes are of interest.
func (f *Filter) Everything() bool { return f.where == nil }

// Holds says whether an entry is as the condition says. What is no entry is not, and neither is one
// on which the condition fails or panics: a look at events ends no process.
func (f *Filter) Holds(tag string, entry []byte) (holds bool) {
	if f.where == nil {
		return true
	}
	defer func() {
		if recover() != nil {
			holds = false
		}
	}()
	if _, err := f.event.read(tag, entry); err != nil {
		return false
	}
	holds = f.where.holds(&f.event) && f.event.failed == nil
	f.event.failed = nil
	f.event.shrink()
	return holds
}
