// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestKillReload kills the collector in and after reloads: ends change, an output goes and comes
// again, files are broken. Each start names both outputs, and each has each event once.
func TestKillReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &reloaded{t: t, r: random(t), dir: dir, addr: needs.Address(), done: map[string]int{}}
	w.s = &setup{config: filepath.Join(dir, "spillway.yaml"), data: filepath.Join(dir, "data")}
	rounds := needs.Rounds(t, "SPILLWAY_KILLS", 3, 8)
	checked.build(t)

	ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Minute+time.Duration(rounds)*10*time.Second,
		errors.New("the kill test takes too long"))
	defer cancel()
	stop, finished := make(chan struct{}), make(chan struct{})
	var sent [][]string
	seeds := w.r.Uint64()
	go func() {
		defer close(finished)
		sent = fourSenders(ctx, t, seeds, w.addr, stop)
	}()
	defer func() {
		cancel()
		<-finished
	}()
	for range rounds {
		w.round()
	}
	w.comes = true
	w.write()
	c := startCollector(t, w.s)
	close(stop)
	eventually(t, "all is acked", func() bool {
		select {
		case <-finished:
			return true
		default:
			return false
		}
	})
	var want []string
	for _, names := range sent {
		want = append(want, names...)
	}
	for _, out := range []string{"stay", "come"} {
		eventually(t, "the last events are in "+out, func() bool {
			return newCounter(filepath.Join(dir, out)).count(t) >= len(want) || c.over()
		})
	}
	c.stop()
	for _, out := range []string{"stay", "come"} {
		lines := readLines(t, filepath.Join(dir, out))
		wantNames(t, lines, want...)
		wantOrder(t, lines)
	}
	figure(t, "%d kills, %d events; reloads: %v", rounds, len(want), w.done)
}

// reloaded is a collector whose file changes.
type reloaded struct {
	t    *testing.T
	r    *rand.Rand
	s    *setup
	dir  string
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
	text := fmt.Sprintf("data: %s\nremoved_drain: 300ms\ninputs:\n  main: %s\noutputs:\n%s", w.s.data, input,
		strings.Join(outputs, ""))
	if w.routed {
		text += "routes:\n"
		for _, name := range names {
			text += fmt.Sprintf("  - {match: \"**\", continue: true, do: [{drop: \"n == -1\"}], to: [%s]}\n", name)
		}
	}
	must(w.t, os.WriteFile(w.s.config, []byte(text), 0o600))
}

// round is one life of the collector, with reloads in it.
func (w *reloaded) round() {
	w.comes = true // a start with a file that does not name an output gives up its place
	w.write()
	c := startCollector(w.t, w.s)
	for range 1 + w.r.IntN(5) {
		pause(c, w.r, 150*time.Millisecond)
		w.change()
		if c.over() {
			break
		}
		must(w.t, c.cmd.Process.Signal(syscall.SIGHUP))
	}
	pause(c, w.r, []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 400 * time.Millisecond}[w.r.IntN(3)])
	if c.over() {
		w.t.Fatalf("the collector ended by itself: %v\n%s", c.err, tail(c.log.String(), 4000))
	}
	c.kill()
	c.forget()
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
		must(w.t, os.WriteFile(w.s.config, []byte("outputs: [\n"), 0o600))
		return
	}
	kind := kinds[w.r.IntN(len(kinds))]
	w.done[kind.name]++
	kind.do()
	w.write()
}
