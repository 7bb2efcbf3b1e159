// SPDX-License-Identifier: Apache-2.0

package mover

import (
	"strings"
	"testing"
)

// fates has each combination of circumstances in exactly one row: - is yes and no. Phases are
// running and sealed (r), stopped (s), saving (p) and leaving (l); overflow is DropOldest (o) or
// not (n).
const fates = `
phase overflow dir refused busy able short over beyond  action
s     -        -   -       -    -    -     -    -       waits
l     -        -   -       -    -    -     -    -       waits

p     -        1   0       0    -    -     -    -       spills
p     -        1   0       1    -    -     -    -       waits
p     -        1   1       -    -    -     -    -       waits
p     -        0   -       -    -    -     -    -       waits

r     -        -   -       -    1    -     -    -       ships

r     -        1   0       0    0    0     0    -       waits
r     -        1   0       0    0    0     1    -       spills
r     -        1   0       0    0    1     -    -       spills

r     n        0   -       -    0    -     -    -       waits
r     n        1   1       -    0    -     -    -       waits
r     n        1   0       1    0    -     -    -       waits

r     o        0   -       -    0    0     0    -       waits
r     o        0   -       -    0    0     1    -       drops
r     o        0   -       -    0    1     -    -       drops
r     o        1   1       -    0    0     0    -       waits
r     o        1   1       -    0    0     1    -       drops
r     o        1   1       -    0    1     -    -       drops
r     o        1   0       1    0    0     0    -       waits
r     o        1   0       1    0    0     1    0       waits
r     o        1   0       1    0    0     1    1       drops
r     o        1   0       1    0    1     -    0       waits
r     o        1   0       1    0    1     -    1       drops
`

func TestFate(t *testing.T) {
	var rows [][]string
	for line := range strings.Lines(fates) {
		if row := strings.Fields(line); len(row) == 10 && row[0] != "phase" {
			rows = append(rows, row)
		}
	}
	fits := func(row []string, c circumstances) bool {
		is := []string{
			map[phase]string{running: "r", sealed: "r", stopped: "s", saving: "p", leaving: "l"}[c.phase],
			map[Overflow]string{DropNewest: "n", Block: "n", DropOldest: "o"}[c.overflow],
		}
		for _, b := range []bool{c.dir, c.refused, c.busy, c.able, c.short, c.over, c.beyond} {
			is = append(is, map[bool]string{true: "1", false: "0"}[b])
		}
		for i := range is {
			if row[i] != "-" && row[i] != is[i] {
				return false
			}
		}
		return true
	}
	for _, p := range []phase{running, sealed, stopped, saving, leaving} {
		for _, o := range []Overflow{DropNewest, DropOldest, Block} {
			for bits := range 1 << 7 {
				bit := func(i int) bool { return bits>>i&1 == 1 }
				c := circumstances{p, o, bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6)}
				var found []string
				for _, row := range rows {
					if fits(row, c) {
						found = append(found, row[9])
					}
				}
				if len(found) != 1 || found[0] != c.action().String() {
					t.Errorf("%+v: %v, the table says %q", c, c.action(), found)
				}
			}
		}
	}
}
