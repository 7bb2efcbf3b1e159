// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spillwaylog/spillway/internal/lines"
)

// finds counts the lines in which something was looked for and could not be read. The first of them
// are told.
type finds struct {
	what, key string // "time", and the key; "": nothing is looked for
	instead   string // what such a line's event gets
	w         io.Writer

	absent, unreadable int
}

// findsTold is how many lines are told one by one.
const findsTold = 3

// note counts what was found in a line.
func (f *finds) note(line int, found lines.Finding) {
	if f.key == "" || found == lines.FindingSaid {
		return
	}
	how := fmt.Sprintf("no %s under %q", f.what, f.key)
	if found == lines.FindingAbsent {
		f.absent++
	} else {
		f.unreadable++
		how = fmt.Sprintf("the %s under %q cannot be read and stays in the record", f.what, f.key)
	}
	if f.absent+f.unreadable <= findsTold {
		fmt.Fprintf(f.w, "spillway: line %d: %s; it is sent %s\n", line, how, f.instead)
	}
}

// sum tells the counts, if there is something to tell.
func (f *finds) sum(total int) {
	if f.absent+f.unreadable > 0 {
		fmt.Fprintf(f.w, "spillway: of %d lines, %d without a %s under %q and %d with one that cannot be read were sent %s\n",
			total, f.absent, f.what, f.key, f.unreadable, f.instead)
	}
}
