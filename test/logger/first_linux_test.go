// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestFirstProgram runs programs that log to a stream and end without Close, as a first one does,
// by os.Exit at once after the last call. What they logged is there, in order. A call waits for
// 10 ms and no longer, so what a busy machine has not written by then the next program of the name
// prints.
func TestFirstProgram(t *testing.T) {
	t.Parallel()
	h := rig.NewHome(t)
	const runs, lines = 40, 3
	next := map[string]uint64{} // of each program, the line that is to come
	read := func(text []byte) (own map[string]int) {
		own = map[string]int{}
		for b := range bytes.Lines(text) {
			l, err := rig.ParseLine(b)
			rig.Must(t, err)
			k, _ := l.Record["k"].(string)
			n, ok := rig.Whole(number(l.Record["n"]))
			if !ok || n > next[k] {
				t.Fatalf("of %s comes line %v, want %d", k, l.Record["n"], next[k])
			}
			next[k] = max(next[k], n+1) // or it is printed again, by the next program
			own[k]++
		}
		return own
	}
	complete := 0
	program := func(prefix string, abandon bool) map[string]int {
		c := rig.StartChild(t, rig.Order{
			Destination: "stderr:", Prefix: prefix, Goroutines: 1, Count: lines, Abandon: abandon,
			Options: rig.ChildOptions{Shm: h.Shm},
		})
		rig.Must(t, c.Stdin.Close())
		rig.Eventually(t, "the program ends", c.Over)
		return read([]byte(c.Log.String()))
	}
	for run := range runs {
		prefix := fmt.Sprint("first", run)
		if program(prefix, true)[prefix+".0"] == lines {
			complete++
		}
	}
	if complete == 0 {
		t.Errorf("none of %d programs has printed its lines itself", runs)
	}
	if n := program("last", false)["last.0"]; n != lines {
		t.Errorf("one that calls Close has printed %d lines", n)
	}
	for run := range runs {
		if k := fmt.Sprintf("first%d.0", run); next[k] != lines {
			t.Errorf("of %s came %d lines", k, next[k])
		}
	}
	h.WantEmpty()
	rig.Figure(t, "%d of %d programs printed all of their lines themselves", complete, runs)
}

// number reads a json.Number.
func number(v any) any {
	n, ok := v.(interface{ Int64() (int64, error) })
	if !ok {
		return v
	}
	i, err := n.Int64()
	if err != nil {
		return v
	}
	return i
}
