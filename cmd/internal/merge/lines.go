// SPDX-License-Identifier: Apache-2.0

package merge

// Lines takes lines in their order.
type Lines interface {
	// Line takes a line, which may change afterwards, and its time in nanoseconds since 1970.
	Line(ns int64, line []byte) error
	// Flush is called when there are no more for now, and at the end.
	Flush() error
}

func (m *merge) flush() error {
	if m.Lines != nil {
		return m.Lines.Flush()
	}
	return m.out.Flush()
}
