// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestLoggerKillMerged kills twenty processes at random moments, which write a file each or send to
// a collector: what each accepted is in the merged log once, in the order of its calls.
func TestLoggerKillMerged(t *testing.T) {
	t.Parallel()
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 1, 1)
	for _, name := range []string{"a file each", "a collector"} {
		t.Run(name, func(t *testing.T) {
			r := rig.Random(t)
			h := rig.NewHome(t)
			s, out := rig.NewSetup(t)
			o := rig.Order{
				Destination: "file://" + filepath.Join(out, "out.{pid}.jsonl"), Goroutines: 1, Prefix: rig.Mixed,
				Options: rig.ChildOptions{Shm: h.Shm, RingSize: 1 << 20},
			}
			if name == "a collector" {
				s.Listen = []string{"forward://" + needs.Address()}
				o.Destination, o.Prefix = s.Listen[0]+"?"+rig.Quickly, ""
			}
			c := rig.StartCollector(t, s)
			var children []*rig.ChildProcess
			for round := range rounds {
				children = append(children, killTwenty(t, r, o, round)...)
			}
			stats := rig.Closing(t, h.Open(o.Destination, spillway.Options{}))
			rig.WantLaw(t, stats)
			rig.Eventually(t, "all is in the output", func() bool { return c.Behind(s) == 0 || c.Over() })
			c.Stop()

			paths := rig.LineFiles(t, out)
			merged := filepath.Join(t.TempDir(), "merged.jsonl")
			to, err := os.Create(merged)
			rig.Must(t, err)
			merge := exec.Command(rig.Checked.Build(t), append([]string{"merge", "--slack", "1h"}, paths...)...)
			merge.Stdout, merge.Stderr = to, t.Output()
			rig.Must(t, merge.Run())
			rig.Must(t, to.Close())

			into := rig.NewLedger()
			lines := into.File(t, merged)
			into.Check(t)
			events := rig.WantAll(t, into, children...)
			h.WantEmpty()
			rig.Figure(t, "%d kills, %d files, %d lines, %d events", len(children), len(paths), lines, events)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.Tell()
			}
		})
	}
}
