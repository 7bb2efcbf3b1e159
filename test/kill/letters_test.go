// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/internal/letters"
	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/msgpack"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// putLetters stores letters of two outputs by turns, each with one to three events, and returns the
// names of these.
func putLetters(t *testing.T, data string, count int) (names []string) {
	t.Helper()
	s, err := letters.Open(filepath.Join(data, letters.Dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []letters.Letter
	for i := range count {
		l := letters.Letter{
			Output: fmt.Sprint("output", i%2), Reason: "400 Bad Request", Position: uint64(i),
			Chunk: &forward.Chunk{Tag: "dead"},
		}
		for n := range 1 + i%3 {
			name := fmt.Sprintf("%s-%d", l.Output, 3*i+n) // as wantOrder reads it
			b := append(l.Chunk.Entries, 0x92)
			b = forward.AppendEventTime(b, 1795226584, uint32(i))
			b = msgpack.AppendMapHeader(b, 1)
			b = msgpack.AppendString(b, "name")
			l.Chunk.Entries = msgpack.AppendString(b, name)
			l.Chunk.Events++
			names = append(names, name)
		}
		all = append(all, l)
	}
	if err := s.Put(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return names
}

func lettersThere(t testing.TB, data string) (n int) {
	t.Helper()
	l, err := letters.Read(filepath.Join(data, letters.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Letters(func(*letters.Entry) bool { n++; return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestReplayKill kills and interrupts a replay again and again, now of one output, now of all, and
// kills the receiver, too: each event arrives once, those of each output in order.
func TestReplayKill(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	count := needs.Rounds(t, "SPILLWAY_LETTERS", 10_000, 30_000)
	s, out := rig.NewSetup(t)
	data := filepath.Join(t.TempDir(), "data")
	want := putLetters(t, data, count)
	c := rig.StartCollector(t, s)
	s.Listen = []string{"forward://" + c.Addr}
	bin := rig.Checked.Build(t)
	torn, ended, receiverDies := 0, 0, false
	arrived := rig.NewCounter(out)
	for left := count; left > 0; {
		args := []string{"replay", data, "--to", "forward://" + c.Addr}
		if r.IntN(3) == 0 {
			args = append(args, "--output", fmt.Sprint("output", r.IntN(2)))
		}
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Start()
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			err = cmd.Wait()
			close(done)
		}()
		goal := arrived.Count(t) + r.IntN(len(want)/10)
		rig.Eventually(t, "the replay ends, or some more letters arrive", func() bool {
			select {
			case <-done:
				return true
			default:
				return arrived.Count(t) >= goal
			}
		})
		if receiverDies = r.IntN(3) == 0; receiverDies { // first: what is on its way is lost with it
			c.Kill()
		}
		_ = cmd.Process.Signal([]os.Signal{os.Kill, os.Interrupt}[r.IntN(2)]) // it may have ended already
		<-done
		now := lettersThere(t, data)
		if strings.Contains(said.String(), "DATA RACE") || strings.Contains(said.String(), "panic") || now > left {
			t.Fatalf("%d letters, %d before: %v\n%s", now, left, err, &said)
		}
		if now > 0 && now < left && err != nil {
			torn++
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && !status.Signaled() {
			if ended++; err == nil != strings.Contains(said.String(), "left 0 letters") {
				t.Errorf("%v: %s", err, &said)
			}
		}
		left = now
		if receiverDies {
			c.Forget()
			c = rig.StartCollector(t, s)
		}
	}
	rig.WaitLines(t, out, len(want))
	c.Terminate() // not stop, which looks at the account: one that has just begun may still be counting what it found
	if code := c.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lines := rig.ReadLines(t, out)
	rig.WantNames(t, lines, want...)
	rig.WantOrder(t, lines)
	if torn == 0 {
		t.Error("no replay was ended in the middle")
	}
	rig.Figure(t, "%d letters, %d replays ended in the middle, %d by themselves", count, torn, ended)
}
