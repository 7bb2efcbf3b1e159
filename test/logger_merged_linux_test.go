// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/internal/needs"
)

// TestLoggerKillMerged kills twenty processes at random moments, which write a file each or send to
// a collector: what each accepted is in the merged log once, in the order of its calls.
func TestLoggerKillMerged(t *testing.T) {
	t.Parallel()
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 1, 1)
	for _, name := range []string{"a file each", "a collector"} {
		t.Run(name, func(t *testing.T) {
			r := random(t)
			h := newHome(t)
			s, out := newSetup(t)
			o := order{
				Destination: "file://" + filepath.Join(out, "out.{pid}.jsonl"), Goroutines: 1, Prefix: mixed,
				Options: childOptions{Shm: h.shm, RingSize: 1 << 20},
			}
			if name == "a collector" {
				s.listen = []string{"forward://" + needs.Address()}
				o.Destination, o.Prefix = s.listen[0]+"?"+quickly, ""
			}
			c := startCollector(t, s)
			var children []*childProcess
			for round := range rounds {
				children = append(children, killTwenty(t, r, o, round)...)
			}
			stats := closing(t, h.open(o.Destination, spillway.Options{}))
			wantLaw(t, stats)
			eventually(t, "all is in the output", func() bool { return c.behind(s) == 0 || c.over() })
			c.stop()

			paths := jsonlFiles(t, out)
			merged := filepath.Join(t.TempDir(), "merged.jsonl")
			to, err := os.Create(merged)
			must(t, err)
			merge := exec.Command(checked.build(t), append([]string{"merge", "--slack", "1h"}, paths...)...)
			merge.Stdout, merge.Stderr = to, t.Output()
			must(t, merge.Run())
			must(t, to.Close())

			into := newLedger()
			lines := into.file(t, merged)
			into.check(t)
			events := wantAll(t, into, children...)
			h.wantEmpty()
			figure(t, "%d kills, %d files, %d lines, %d events", len(children), len(paths), lines, events)
			if t.Failed() {
				t.Logf("at the end: %+v", stats)
				h.tell()
			}
		})
	}
}
