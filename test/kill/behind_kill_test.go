// SPDX-License-Identifier: Apache-2.0

package kill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestKillBehind has a file output that cannot write beside a healthy one, which says of what waits
// too long that it is dropped, becomes dead letters, or makes senders wait, and kills the collector
// while that happens. Each event is once in the healthy output, and in the other one at most once;
// what is missing there was given up, nothing that it still had room for, and no letter is there
// twice.
func TestKillBehind(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"drop", "dead_letter", "block"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s, out := rig.NewSetup(t)
			dir := filepath.Dir(out)
			w := &lagging{t: t, r: rig.Random(t), s: s, when: when, out: out, dir: filepath.Join(dir, "slow")}
			rig.Must(t, os.Mkdir(w.dir, 0o700))
			s.To = append(s.To, "slow=file://"+w.dir+"/{tag}/x.jsonl?max_behind=1MiB&when_behind="+when)
			s.Args = []string{"--letters-size", "1GiB"}
			s.Listen = []string{"forward://" + needs.Address()}
			w.run(needs.Rounds(t, "SPILLWAY_KILLS", 1, 2))
		})
	}
}

// lagging is a collector with a healthy output and one that may be blocked: by a file where it has
// to make a directory for a tag.
type lagging struct {
	t        *testing.T
	r        *rand.Rand
	s        *rig.Setup
	when     string
	out, dir string
	sent     [][]string // of each phase
	given    []string   // events of the phases in which the output was blocked
	kills    int
	letters  map[string]int
}

func (w *lagging) run(phases int) {
	t := w.t
	rig.Checked.Build(t)
	for phase := range phases {
		w.phase(phase)
	}
	want := map[string]bool{}
	for _, names := range w.sent {
		for _, name := range names {
			want[name] = true
		}
	}
	lines := rig.ReadLines(t, w.out)
	var all []string
	for name := range want {
		all = append(all, name)
	}
	rig.WantNames(t, lines, all...)
	rig.WantOrder(t, lines)
	slow := rig.ReadLines(t, w.dir)
	rig.WantOrder(t, slow) // and so none is there twice
	have := rig.Names(slow)
	w.letters = w.deadLetters()
	given := map[string]bool{}
	for _, name := range w.given {
		given[name] = true
	}
	missing, both, wrong := 0, 0, 0
	for name := range want {
		in, letters := have[name], w.letters[name]
		switch {
		case in > 1 || letters > 1:
			wrong++
			t.Errorf("%s is in the output %d times, in dead letters %d times", name, in, letters)
		case in == 0 && (w.when == "block" || !given[name] || w.when == "dead_letter" && letters == 0):
			wrong++
			t.Errorf("%s is lost", name)
		case in == 0:
			missing++
		case letters > 0: // the output had begun it when it was closed
			both++
		}
		if wrong > 10 {
			t.FailNow()
		}
	}
	for name := range have {
		if !want[name] {
			t.Errorf("nobody sent %s", name)
		}
	}
	if w.when != "block" && missing == 0 {
		t.Error("nothing was given up")
	}
	rig.Figure(t, "%d kills, %d events, %d of them not in the output that was blocked, %d there and a dead letter too",
		w.kills, len(want), missing, both)
}

// phase blocks the output, kills the collector while it is behind, and lets it go on.
func (w *lagging) phase(phase int) {
	t := w.t
	tag := fmt.Sprint("b.", phase)
	gate := filepath.Join(w.dir, tag)
	rig.Must(t, os.WriteFile(gate, nil, 0o600))
	sent := w.load(tag, fmt.Sprint("p", phase), func() {
		behind := 0
		for i := range 2 + w.r.IntN(2) {
			c := rig.StartCollector(t, w.s)
			if i > 0 { // nothing that was given up, delivered or left is counted again
				var a rig.Account
				rig.Eventually(t, "the collector has counted what it found", func() bool {
					a = c.Account()
					return c.Over() || a["counting"] == 0
				})
				if got := a["output1.found"]; int(got) != behind {
					t.Errorf("%d events found for the output, %d were behind at the kill", got, behind)
				}
			}
			c.Says(map[string]string{
				"drop": "output drops events", "dead_letter": "output makes events dead letters",
				"block": "output too far behind",
			}[w.when])
			rig.Pause(c, w.r, 500*time.Millisecond)
			c.Kill()
			c.Forget()
			w.kills++
			behind = w.behind()
		}
		if w.when == "block" { // or the senders would never end
			rig.Must(t, os.Remove(gate))
		}
	}, func() *rig.Collector { return rig.StartCollector(t, w.s) })
	if w.when != "block" {
		rig.Must(t, os.Remove(gate))
	}
	w.given = append(w.given, sent...)
	w.sent = append(w.sent, sent)
	c := rig.StartCollector(t, w.s)
	idle := func() bool {
		a := c.Account()
		return a["counting"] == 0 && a["output0.behind"] == 0 && a["output1.behind"] == 0
	}
	rig.Eventually(t, "the outputs have what they were left", idle)
	l := c.Lane() // and the next ones, which nothing may be missing of
	var names []string
	for i := range 50 {
		name := fmt.Sprintf("q%d-%d", phase, i)
		names = append(names, name)
		id := rig.NewID()
		l.Send(rig.Packed(tag, id, rig.Named(name).Append(nil)), id)
	}
	w.sent = append(w.sent, names)
	rig.Eventually(t, "the outputs have all", idle)
	c.Stop()
}

// load has two senders send under a tag while kill runs, and until the collector of last has acked
// all. It returns what they sent.
func (w *lagging) load(tag, name string, kill func(), last func() *rig.Collector) (sent []string) {
	t := w.t
	ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Minute, errors.New("the kill test takes too long"))
	stop := make(chan struct{})
	senders := make([]*rig.Sender, 2)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	seed := w.r.Uint64()
	addr := strings.TrimPrefix(w.s.Listen[0], "forward://")
	for i := range senders {
		senders[i] = &rig.Sender{
			Name: fmt.Sprintf("%s.%d", name, i), Addr: addr, Tag: tag, Pad: 4000,
			Rand: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		wg.Go(func() {
			if err := senders[i].Run(ctx, stop); err != nil {
				t.Error(err)
			}
		})
	}
	kill()
	c := last()
	close(stop)
	wg.Wait()
	c.Kill()
	c.Forget()
	w.kills++
	for _, s := range senders {
		sent = append(sent, s.Sent...)
	}
	return sent
}

var slowLine = regexp.MustCompile(`(?m)^slow=\S+ +\S+ +(\d+) `)

// behind asks the journal of a dead collector how many events wait for the output.
func (w *lagging) behind() int {
	w.t.Helper()
	text, err := exec.Command(rig.Lean.Build(w.t), "journal", "ls", w.s.Data).CombinedOutput()
	if err != nil {
		w.t.Fatalf("journal ls: %v\n%s", err, text)
	}
	m := slowLine.FindSubmatch(text)
	if m == nil {
		w.t.Fatalf("journal ls does not list the output:\n%s", text)
	}
	n, err := strconv.Atoi(string(m[1]))
	rig.Must(w.t, err)
	return n
}

// deadLetters counts the events that are dead letters, by name.
func (w *lagging) deadLetters() map[string]int {
	w.t.Helper()
	count := map[string]int{}
	if _, err := os.Stat(filepath.Join(w.s.Data, "letters")); err != nil {
		if w.when == "dead_letter" {
			w.t.Error(err)
		}
		return count
	}
	cmd := exec.Command(rig.Lean.Build(w.t), "journal", "cat", "--letters", w.s.Data)
	text, err := cmd.Output()
	rig.Must(w.t, err)
	for line := range strings.Lines(string(text)) {
		var l struct {
			Output string
			Event  struct{ Name string }
		}
		rig.Must(w.t, json.Unmarshal([]byte(line), &l))
		if l.Output != "slow" {
			w.t.Fatalf("a letter of %q", l.Output)
		}
		count[l.Event.Name]++
	}
	return count
}
