// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestManyDates sends one chunk with more dates than the output may make new files for in a minute,
// under a long name, and kills the collector in the midst of it at several places: each event is
// in one file once, and an event behind it does not wait for that many files.
func TestManyDates(t *testing.T) {
	t.Parallel()
	const dates, bound = 400, 150
	s, out := rig.NewSetup(t)
	s.To = []string{"file://" + out + "/{date}." + strings.Repeat("long", 40) + ".jsonl?new_files=" + fmt.Sprint(bound)}
	var want []string
	for round, at := range []int{1, 40, bound - 1, bound + 1} {
		var entries []byte
		for i := range dates {
			e := rig.Named(fmt.Sprintf("d%d-%d", round, i))
			e.Sec += uint32((round*dates + i) * 86400)
			entries = e.Append(entries)
			want = append(want, e.Name)
		}
		c := rig.StartCollector(t, s)
		l := c.Lane()
		before := countFiles(t, out)
		id := rig.NewID()
		l.Send(rig.Packed("many", id, entries), id)
		rig.Eventually(t, "files are made, or the bound of the process before still holds", func() bool {
			return countFiles(t, out) >= before+min(at, bound) || len(rig.ReadLines(t, out)) == len(want)
		})
		c.Kill()
	}
	c := rig.StartCollector(t, s)
	l := c.Lane()
	id := rig.NewID()
	l.Send(rig.Packed("innocent", id, rig.Named("innocent").Append(nil)), id)
	want = append(want, "innocent")
	rig.WaitLines(t, out, len(want))
	c.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), want...)
	rig.Figure(t, "%d dates, %d new files a minute: %d files", 4*dates, bound, countFiles(t, out))
}

func countFiles(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	rig.Must(t, err)
	return len(all)
}
