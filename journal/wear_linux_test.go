// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

var diskStat = flag.String("disk", "", "`file` with the statistics of the disk under the temporary directory, such as /sys/block/vda/stat")

// TestWear measures what one event, appended and synced alone, writes to the disk. Others may write
// to it at the same time, so the least of many tries counts. It runs only when told which disk: go
// test -run TestWear -disk /sys/block/vda/stat
func TestWear(t *testing.T) {
	if *diskStat == "" {
		needs.Skip(t, "no -disk")
	}
	written := func() int {
		b, err := os.ReadFile(*diskStat)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.Fields(string(b))[6])
		if err != nil {
			t.Fatal(err)
		}
		return n * 512
	}
	j := mustOpen(t, t.TempDir(), nil)
	r := mustReader(t, j, "r")
	seen := map[int]int{}
	commits := map[int]int{}
	for i := range 300 {
		before := written()
		mustSync(t, j, mustAppend(t, j, testRecord(uint64(i), 300)))
		seen[written()-before]++
		if _, err := r.Next(bg); err != nil {
			t.Fatal(err)
		}
		before = written()
		if err := r.Commit(r.Pos(), []byte("state")); err != nil {
			t.Fatal(err)
		}
		commits[written()-before]++
	}
	least := func(m map[int]int) int {
		l := 1 << 30
		for n := range m {
			l = min(l, n)
		}
		return l
	}
	t.Logf("bytes written by a sync of one event, and how often: %v", seen)
	t.Logf("and by a commit: %v", commits)
	if n := least(seen); n > 16<<10 {
		t.Errorf("one event writes at least %d bytes", n)
	}
	if n := least(commits); n > 16<<10 {
		t.Errorf("one commit writes at least %d bytes", n)
	}
}
