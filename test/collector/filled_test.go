// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestFilledDisk has the journal fill its own disk, to the level at which one segment more, or the
// next page of anything, has no room; kills the collector there, or not; and lets the output go on.
// From each level it starts, drains to empty, and takes events again once nobody else fills the
// disk.
func TestFilledDisk(t *testing.T) {
	t.Parallel()
	levels := needs.Rounds(t, "SPILLWAY_LEVELS", 2, 2)
	r := rig.Random(t)
	for n := range levels {
		for _, killed := range []bool{false, true} {
			size := 44<<20 + 4096*r.IntN(8<<20/4096) // two segments fit, or three; what is left differs
			kib := 64 << r.IntN(3)
			t.Run(fmt.Sprintf("%d.killed=%t", n, killed), func(t *testing.T) { testFilledDisk(t, size, kib, killed) })
		}
	}
}

func testFilledDisk(t *testing.T, size, kib int, killed bool) {
	d := rig.NewDisk(t, fmt.Sprint(size))
	s, _ := rig.NewSetup(t)
	s.Data = filepath.Join(d.Dir, "data")
	// The way to the output's folder leads to a disk that is full at first, so its output takes
	// nothing.
	full := rig.NewDisk(t, "1m")
	full.Fill()
	way := filepath.Join(t.TempDir(), "way")
	rig.Must(t, os.Symlink(full.Dir, way))
	s.To = []string{"file://" + way + "/out/{tag}.jsonl"}
	c := rig.StartCollector(t, s)
	st := startStream(t, c, "fill", kib<<10)
	c.Says("level=ERROR", "journal full")
	if killed {
		st.breaks.Store(true)
		c.Kill()
		rig.Eventually(t, "the stream ends", st.over)
		d.Fill() // nothing is left but what the journal has kept for itself
		c = rig.StartCollector(t, s)
		c.Kill()
		c = rig.StartCollector(t, s)
	}
	out := filepath.Join(way, "out")
	rig.Must(t, os.Remove(way))
	rig.Must(t, os.MkdirAll(out, 0o700))
	names := st.acked
	if killed {
		rig.WaitLines(t, out, len(names)) // with no room at all; to take more it needs some
		rig.Must(t, os.Remove(filepath.Join(d.Dir, "filler")))
		st = startStream(t, c, "after", kib<<10)
	}
	st.more(64 << 10 / kib) // 64 MiB: more than the disk has room for
	names = append(names[:len(names):len(names)], st.end()...)
	if !killed {
		names = st.acked
	}
	rig.WaitLines(t, out, len(names))
	rig.Eventually(t, "the journal is empty", func() bool { return c.Behind(s) == 0 })
	c.Stop()
	lines := rig.ReadLines(t, out)
	if killed { // what was on its way may have been stored
		last := fmt.Sprintf("fill-%d", slices.IndexFunc(names,
			func(n string) bool { return strings.HasPrefix(n, "after") }))
		if have := len(lines); have == len(names)+1 {
			names = append(names, last)
		}
	}
	rig.WantNames(t, lines, names...)
}
