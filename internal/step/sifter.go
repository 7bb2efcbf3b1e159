// SPDX-License-Identifier: Apache-2.0

package step

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// A Sifter is what one output gets: which tags, and what of their events. One goroutine uses it at
// a time.
type Sifter struct {
	rules  []rule
	shares map[string]*program // by tag; nil: nothing
	steps  bool
	retags bool
	steady [32]byte // the mark of the steps alone
	mark   [32]byte // of the steps, and of what else they go by
	whole  [32]byte // of all that decides
	event  event

	memories []*memory  // of throttle and dedup
	lookups  []*looking // of lookup
	records  uint64     // learnt
}

// A rule is a route as an output sees it: the first one that matches decides.
type rule struct {
	glob    glob
	program *program // nil: it leads elsewhere
}

// everything is the program of a route without steps.
var everything = &program{}

// A Share is what an output gets of the events with a tag.
type Share uint8

// The shares.
const (
	None Share = iota // nothing
	All               // each as it is
	Some              // what Sift leaves
)

// Takes says what the output gets of a tag. It is decided once a tag, unless that is a long one.
func (s *Sifter) Takes(tag string) Share {
	switch s.of(tag) {
	case nil:
		return None
	case everything:
		return All
	}
	return Some
}

// Steps says whether there is a tag of which it takes Some.
func (s *Sifter) Steps() bool { return s.steps }

// Retags says whether events may get another tag.
func (s *Sifter) Retags() bool { return s.retags }

// Same says whether both give the same; nil gives everything.
func (s *Sifter) Same(other *Sifter) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.whole == other.whole
}

// Mark is what the steps are known by: others, and those that fail on other events, or elsewhere,
// have another one. So have the same ones with another table, or that began to remember elsewhere.
func (s *Sifter) Mark() []byte { return s.mark[:] }

// remark makes the mark anew.
func (s *Sifter) remark() {
	s.mark = s.steady
	if len(s.memories)+len(s.lookups) == 0 {
		return
	}
	sum := sha256.New()
	sum.Write(s.steady[:])
	for _, m := range s.memories {
		sum.Write(binary.BigEndian.AppendUint64(nil, m.born))
	}
	for _, l := range s.lookups {
		sum.Write(l.rows.sum[:])
	}
	sum.Sum(s.mark[:0])
}

// takeTables has lookups take up the tables that there are now.
func (s *Sifter) takeTables() {
	changed := false
	for _, l := range s.lookups {
		changed = l.take() || changed
	}
	if changed {
		s.remark()
	}
}

// maxKeptTag is the longest tag of which the program is remembered: longer ones would take too
// much memory.
const maxKeptTag = 256

// of returns the program for a tag.
func (s *Sifter) of(tag string) *program {
	p, known := s.shares[tag]
	if known {
		return p
	}
	for i := range s.rules {
		if r := &s.rules[i]; r.glob.match(tag) {
			p = r.program
			break
		}
	}
	if len(tag) > maxKeptTag {
		return p
	}
	if len(s.shares) >= maxTags {
		clear(s.shares)
	}
	s.shares[tag] = p
	return p
}

// Sifted is what steps left of some entries, in their order.
type Sifted struct {
	Entries []byte
	Runs    []Run
	Failed  []Failure // dead letters
	Events  int       // how many entries it is made of
	Most    int       // Sift stops when Entries has as many bytes, or when it has made much else; 0: it does not
	Rest    []byte    // the entries behind; it aliases them
}

// maxMade is how many runs, or failures, Sift makes before it stops.
const maxMade = 1 << 12

// A Run is entries that follow one another and have one tag.
type Run struct {
	Tag    string
	End    int // in Entries
	Events int
}

// A Failure is an event that is to be a dead letter.
type Failure struct {
	Index  int    // in its record
	Entry  []byte // as it came; it aliases the entries
	Reason string
}

// Sift runs the steps for a tag over entries of the record that ends at a position, and replaces
// what into has but for Most. first is the index of the first of them: with 0 a record begins. Its
// answer depends on nothing else, but for steps that remember what came before, and tables. The
// error says that what follows the entries so far is no entry.
func (s *Sifter) Sift(into *Sifted, tag string, entries []byte, at uint64, first int) error {
	into.Entries, into.Runs, into.Failed, into.Rest = into.Entries[:0], into.Runs[:0], into.Failed[:0], nil
	p := s.of(tag)
	e := &s.event
	e.at, e.index, e.maxBytes = at, first, p.maxBytes
	if first == 0 {
		s.takeTables()
	}
	for len(entries) > 0 {
		n, err := e.read(tag, entries)
		if err != nil && !errors.Is(err, errFields) {
			return err
		}
		e.serial++
		keep, letter, why := false, true, err // no step has seen it, so it goes nowhere
		if err == nil {
			keep, letter, why = p.run(e)
		}
		switch {
		case letter:
			into.Failed = append(into.Failed, Failure{e.index, entries[:n:n], why.Error()})
		case keep:
			if why != nil {
				e.note(why)
			}
			into.Entries = e.append(into.Entries)
			if k := len(into.Runs) - 1; k >= 0 && into.Runs[k].Tag == e.tag {
				into.Runs[k].End = len(into.Entries)
				into.Runs[k].Events++
			} else {
				into.Runs = append(into.Runs, Run{e.tag, len(into.Entries), 1})
			}
		}
		entries = entries[n:]
		e.index++
		if into.Most > 0 && (len(into.Entries) >= into.Most || len(into.Runs) >= maxMade ||
			len(into.Failed) >= maxMade) {
			into.Rest = entries
			break
		}
	}
	into.Events = e.index - first
	e.shrink()
	return nil
}
