// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"fmt"
	"iter"
)

// lineError is what is wrong with a line of a list. It never shows what the line holds: that may be
// a secret in the wrong place.
type lineError struct {
	line int
	why  string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.why) }

// lines yields the lines of a list that are neither empty nor a comment, with their numbers, from
// 1.
func lines(data []byte) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		data = bytes.TrimPrefix(data, mark)
		n := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			n++
			line = bytes.TrimSuffix(line, []byte("\r"))
			if start := bytes.TrimLeft(line, " \t"); len(start) == 0 || start[0] == '#' {
				continue
			}
			if !yield(n, string(line)) {
				return
			}
		}
	}
}
