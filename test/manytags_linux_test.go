// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"testing"
)

// TestManyTags writes far more files than may be open, through kills: the number of open files is bounded, and each event is in its
// file once.
func TestManyTags(t *testing.T) {
	t.Parallel()
	const tags, rounds, bar = 3000, 4, 1000
	s, out := newSetup(t)
	var want []string
	most := 0
	for round := range rounds {
		c := startCollector(t, s)
		l := c.lane()
		for tag := range tags {
			name := fmt.Sprintf("t%d-%d", tag, round)
			id := newID()
			l.write(packed(fmt.Sprint("tag.", tag), id, named(name).append(nil)))
			want = append(want, name)
			if tag%200 == 199 {
				for range 200 { // ids come back in their order; here it only matters that all are acked
					l.deadline(patience)
					_, err := readAck(l.acks)
					must(t, err)
				}
				open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid))
				must(t, err)
				most = max(most, len(open))
			}
		}
		if round == rounds-1 {
			waitLines(t, out, len(want))
			c.stop()
		} else {
			c.kill()
		}
	}
	figure(t, "%d tags: at most %d files open", tags, most)
	if most > bar {
		t.Errorf("%d files open, want at most %d", most, bar)
	}
	lines := readLines(t, out)
	wantNames(t, lines, want...)
	wantOrder(t, lines)
}
