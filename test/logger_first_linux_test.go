// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"os"
	"testing"

	"github.com/spillwaylog/spillway"
)

// TestFirstProgram runs programs that log to a stream and end without Close, as a first one does,
// by os.Exit at once after the last call. All that they logged is there, in order, and their rings
// do not pile up.
func TestFirstProgram(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	const runs, lines = 40, 3
	o := order{Destination: "stderr:", Prefix: "first", Goroutines: 1, Count: lines, Abandon: true, Options: childOptions{Shm: h.shm}}
	for run := range runs {
		c := startChild(t, o)
		must(t, c.stdin.Close())
		eventually(t, "the program ends", c.over)
		into := newLedger()
		for text := range bytes.Lines([]byte(c.log.String())) {
			l, err := parseLine(text)
			must(t, err)
			into.line(l)
		}
		into.check(t)
		into.wantStream(t, "first.0", lines, lines)
		if left := h.rings(); len(left) > 2 || t.Failed() {
			t.Fatalf("after %d runs, rings %q; it wrote:\n%s", run+1, left, c.log)
		}
	}
	saved := os.Stderr
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	must(t, err)
	defer null.Close()
	os.Stderr = null
	l := h.open("stderr:", spillway.Options{})
	os.Stderr = saved
	if s := closing(t, l); s.Adopted.Events > 2*lines {
		t.Errorf("adopted: %+v", s.Adopted)
	}
	h.wantEmpty()
}
