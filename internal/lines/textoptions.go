// SPDX-License-Identifier: Apache-2.0

package lines

// Flags says what stands before the message of a line of text.
type Flags uint16

// The classic switches. With Date|Time|Micros|Level|Source a line is
//
//	2026/11/21 02:03:04.123456 INFO main.go:12: order placed id=42
const (
	Date        Flags = 1 << iota // 2026/11/21
	Time                          // 02:03:04
	Micros                        // 02:03:04.123456; implies Time
	UTC                           // and not the local time
	Level                         // INFO
	Tag                           // app.web
	Source                        // the record's "source" as it is
	ShortSource                   // and only its last element: main.go:12
	Bare                          // none of them, for no flag at all means StdFlags
)

// StdFlags is what no flag at all means.
const StdFlags = Date | Time | Micros | Level | Source

// TextOptions says how text is written. The zero value works.
type TextOptions struct {
	Flags Flags
	Color bool // level and keys are coloured for a terminal
}
