// SPDX-License-Identifier: Apache-2.0

package lines

// Flags says what stands before the message of a line of text, in this order.
type Flags uint16

// The classic switches.
const (
	Date        Flags = 1 << iota // 2026/11/21
	Time                          // 02:03:04
	Micros                        // 02:03:04.123456; implies Time
	UTC                           // and not the local time
	Level                         // INFO
	Tag                           // app.web
	Source                        // internal/web/main.go:12: as the record has it
	ShortSource                   // main.go:12: implies Source
	Bare                          // nothing, for no flag at all means StdFlags
)

// StdFlags is what no flag at all means.
const StdFlags = Date | Time | Micros | Level | Source

// TextOptions says how text is written. The zero value works.
type TextOptions struct {
	Flags Flags
	Color bool // time, level and keys are coloured, for a terminal
}

// has reports whether one of the given flags is set.
func (f Flags) has(flags Flags) bool { return f&flags != 0 }
