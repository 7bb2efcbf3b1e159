// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestKillReload kills the collector in and after reloads: ends change, an output goes and comes
// again, files are broken. Each start names both outputs, and each has each event once.
func TestKillReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &reloaded{t: t, r: rig.Random(t), dir: dir, addr: needs.Address(), done: map[string]int{}}
	w.file = filepath.Join(dir, "spillway.yaml")
	w.s = &rig.Setup{Listen: []string{}, Data: filepath.Join(dir, "data"), Args: []string{"-c", w.file}}
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 3, 8)
	rig.Checked.Build(t)

	seeds := w.r.Uint64()
	acked := underLoad(t, 15*time.Minute+time.Duration(rounds)*10*time.Second,
		func(ctx context.Context, stop <-chan struct{}) [][]string {
			return fourSenders(ctx, t, seeds, w.addr, stop)
		})
	for range rounds {
		w.round()
	}
	w.comes = true
	w.write()
	c := rig.StartCollector(t, w.s)
	want := slices.Concat(acked()...)
	endsWith(c, want, filepath.Join(dir, "stay"), filepath.Join(dir, "come"))
	rig.Figure(t, "%d kills, %d events; reloads: %v", rounds, len(want), w.done)
}

// reloaded is a collector whose file changes.
type reloaded struct {
	t    *testing.T
	r    *rand.Rand
	s    *rig.Setup
	dir  string
	file string // of its configuration
	addr string
	done map[string]int

	comes           bool // the output "come" is there
	from            bool // the input puts the address into records
	stay, come      int  // limits of the size of their files
	routed, flipped bool // each output has a route with a step; they stand in another order
}

// write makes the file.
func (w *reloaded) write() {
	input := "forward://" + w.addr
	if w.from {
		input += "?address_key=from"
	}
	output := func(name string, limit int) string {
		return fmt.Sprintf("  %s: file://%s/%s/{tag}.jsonl?max_size=%dKiB\n", name, w.dir, name, 100+limit)
	}
	outputs := []string{output("stay", w.stay)}
	names := []string{"stay"}
	if w.comes {
		outputs, names = append(outputs, output("come", w.come)), append(names, "come")
	}
	if w.flipped {
		outputs[0], outputs[len(outputs)-1] = outputs[len(outputs)-1], outputs[0]
	}
	text := fmt.Sprintf("removed_drain: 300ms\ninputs:\n  main: %s\noutputs:\n%s", input, strings.Join(outputs, ""))
	if w.routed {
		text += "routes:\n"
		for _, name := range names {
			text += fmt.Sprintf("  - {match: \"**\", continue: true, do: [{drop: \"n == -1\"}], to: [%s]}\n", name)
		}
	}
	rig.Must(w.t, os.WriteFile(w.file, []byte(text), 0o600))
}

// round is one life of the collector, with reloads in it.
func (w *reloaded) round() {
	w.comes = true // a start with a file that does not name an output gives up its place
	w.write()
	c := rig.StartCollector(w.t, w.s)
	for range 1 + w.r.IntN(5) {
		rig.Pause(c, w.r, 150*time.Millisecond)
		w.change()
		if c.Over() {
			break
		}
		rig.Must(w.t, c.Cmd.Process.Signal(syscall.SIGHUP))
	}
	rig.Pause(c, w.r, []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond}[w.r.IntN(3)])
	if c.Over() {
		w.t.Fatalf("the collector ended by itself: %v\n%s", c.Err, rig.Tail(c.Log.String(), 4000))
	}
	c.Kill()
	c.Forget()
}

// change writes a file with one difference.
func (w *reloaded) change() {
	kinds := []struct {
		name string
		do   func()
	}{
		{"come goes or comes", func() { w.comes = !w.comes }},
		{"come changes", func() { w.come = 1 - w.come }},
		{"stay changes", func() { w.stay = 1 - w.stay }},
		{"the input changes", func() { w.from = !w.from }},
		{"routes", func() { w.routed = !w.routed }},
		{"order", func() { w.flipped = !w.flipped }},
		{"nothing", func() {}},
	}
	if w.r.IntN(8) == 0 {
		w.done["broken"]++
		rig.Must(w.t, os.WriteFile(w.file, []byte("outputs: [\n"), 0o600))
		return
	}
	kind := kinds[w.r.IntN(len(kinds))]
	w.done[kind.name]++
	kind.do()
	w.write()
}
