// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestManyDates sends one chunk with more dates than the output may make new files for in a minute,
// under a long name, and kills the collector in the midst of it at several places: each event is
// in one file once, and an event behind it does not wait for that many files.
func TestManyDates(t *testing.T) {
	t.Parallel()
	const dates, bound = 400, 150
	s, out := newSetup(t)
	s.to = []string{"file://" + out + "/{date}." + strings.Repeat("long", 40) + ".jsonl?new_files=" + fmt.Sprint(bound)}
	var want []string
	for round, at := range []int{1, 40, bound - 1, bound + 1} {
		var entries []byte
		for i := range dates {
			e := named(fmt.Sprintf("d%d-%d", round, i))
			e.sec += uint32((round*dates + i) * 86400)
			entries = e.append(entries)
			want = append(want, e.name)
		}
		c := startCollector(t, s)
		l := c.lane()
		before := countFiles(t, out)
		id := newID()
		l.send(packed("many", id, entries), id)
		eventually(t, "files are made, or the bound of the process before still holds", func() bool {
			return countFiles(t, out) >= before+min(at, bound) || len(readLines(t, out)) == len(want)
		})
		c.kill()
	}
	c := startCollector(t, s)
	l := c.lane()
	id := newID()
	l.send(packed("innocent", id, named("innocent").append(nil)), id)
	want = append(want, "innocent")
	waitLines(t, out, len(want))
	c.stop()
	wantNames(t, readLines(t, out), want...)
	figure(t, "%d dates, %d new files a minute: %d files", 4*dates, bound, countFiles(t, out))
}

func countFiles(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	must(t, err)
	return len(all)
}
