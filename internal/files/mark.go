// SPDX-License-Identifier: Apache-2.0

package files

// Mark notes that what was appended so far belongs to one position, and what comes to a later one. Settle gives a state
// for each.
func (s *Set) Mark() {
	s.marks++
	for _, f := range s.grown {
		f.grown = false
		f.cut(s.marks)
	}
	s.grown = s.grown[:0]
	for _, f := range s.waiting {
		f.cut(s.marks)
	}
}

// cut notes how much f got before the latest of so many Marks.
func (f *file) cut(marks int) {
	if len(f.cuts) < marks {
		f.cutTo(marks - 1)
		f.cuts = append(f.cuts, f.appended)
	}
}

// cutTo notes that f got nothing before the latest of so many Marks.
func (f *file) cutTo(marks int) {
	before := int64(0)
	if n := len(f.cuts); n > 0 {
		before = f.cuts[n-1]
	}
	for len(f.cuts) < marks {
		f.cuts = append(f.cuts, before)
	}
}

// Settle is Sync for many positions: it writes all that waits, in as few writes as Sync would, and returns one state for
// each Mark since the last Settle. They are to be committed with their positions in the same order, and before the next
// call of the Set: the bytes up to the first Mark are before the lengths of the first state, and those up to the second
// behind them.
//
//	     ┌───────────┬───────────┬────────┬─────────┐
//	file │ settled   │ 1st Mark  │ 2nd    │ 3rd     │
//	     └───────────┴───────────┴────────┴─────────┘
//	                 ↑ 1st state ↑ 2nd    ↑ 3rd     ↑
//
// Where bytes of others stand between them, all states are the last one. While the Set is Recovering there must be one Mark
// to a Settle.
func (s *Set) Settle() ([][]byte, error) {
	if err := s.Write(); err != nil {
		return nil, err
	}
	marks := s.marks
	var states [][]byte
	for i := range max(marks-1, 0) {
		states = append(states, s.stateOf(func(f *file) (int64, bool) { return f.lengthAt(i), true }))
	}
	last, err := s.syncSettled()
	if err != nil {
		return nil, err
	}
	if marks > 0 {
		states = append(states, last)
	}
	return states, nil
}

// lengthAt returns where the bytes end that were appended before a Mark.
func (f *file) lengthAt(mark int) int64 {
	if !f.touched {
		return f.length
	}
	end, before := f.end, int64(0)
	if f.expected { // all of it was found, and more may be
		end = f.found
	}
	if f.parted || end < 0 {
		return max(end, f.found, f.length)
	}
	switch {
	case mark < len(f.cuts):
		before = f.cuts[mark]
	case f.of != "": // all that came after went to the next file
		return end
	case len(f.cuts) > 0: // it got nothing after that
		before = f.cuts[len(f.cuts)-1]
	}
	return min(max(end-(f.appended-before), f.length), end)
}

// Recovering reports whether lines are expected that an earlier process may have written: they are looked for in several
// files, so that it is not known at a Mark which one they are for.
func (s *Set) Recovering() bool {
	if s.recovered {
		return false
	}
	for _, f := range s.order {
		if f.expected {
			return true
		}
	}
	s.recovered = true
	return false
}
