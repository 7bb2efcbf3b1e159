// SPDX-License-Identifier: Apache-2.0

package test

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
			s, out := newSetup(t)
			dir := filepath.Dir(out)
			w := &lagging{t: t, r: random(t), s: s, when: when, out: out, dir: filepath.Join(dir, "slow")}
			must(t, os.Mkdir(w.dir, 0o700))
			s.to = append(s.to, "slow=file://"+w.dir+"/{tag}/x.jsonl?max_behind=1MiB&when_behind="+when)
			s.args = []string{"--letters-size", "1GiB"}
			s.listen = []string{"forward://" + needs.Address()}
			w.run(needs.Rounds(t, "SPILLWAY_KILLS", 1, 4))
		})
	}
}

// lagging is a collector with a healthy output and one that may be blocked: by a file where it has
// to make a directory for a tag.
type lagging struct {
	t        *testing.T
	r        *rand.Rand
	s        *setup
	when     string
	out, dir string
	sent     [][]string // of each phase
	given    []string   // events of the phases in which the output was blocked
	kills    int
	letters  map[string]int
}

func (w *lagging) run(phases int) {
	t := w.t
	checked.build(t)
	for phase := range phases {
		w.phase(phase)
	}
	want := map[string]bool{}
	for _, names := range w.sent {
		for _, name := range names {
			want[name] = true
		}
	}
	lines := readLines(t, w.out)
	var all []string
	for name := range want {
		all = append(all, name)
	}
	wantNames(t, lines, all...)
	wantOrder(t, lines)
	slow := readLines(t, w.dir)
	wantOrder(t, slow) // and so none is there twice
	have := names(slow)
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
	figure(t, "%d kills, %d events, %d of them not in the output that was blocked, %d there and a dead letter too",
		w.kills, len(want), missing, both)
}

// phase blocks the output, kills the collector while it is behind, and lets it go on.
func (w *lagging) phase(phase int) {
	t := w.t
	tag := fmt.Sprint("b.", phase)
	gate := filepath.Join(w.dir, tag)
	must(t, os.WriteFile(gate, nil, 0o600))
	sent := w.load(tag, fmt.Sprint("p", phase), func() {
		behind := 0
		for i := range 2 + w.r.IntN(2) {
			c := startCollector(t, w.s)
			if i > 0 { // nothing that was given up, delivered or left is counted again
				var a account
				eventually(t, "the collector has counted what it found", func() bool {
					a = c.account()
					return c.over() || a["counting"] == 0
				})
				if got := a["output1.found"]; int(got) != behind {
					t.Errorf("%d events found for the output, %d were behind at the kill", got, behind)
				}
			}
			c.says(map[string]string{
				"drop": "output drops events", "dead_letter": "output makes events dead letters",
				"block": "output too far behind",
			}[w.when])
			pause(c, w.r, 500*time.Millisecond)
			c.kill()
			c.forget()
			w.kills++
			behind = w.behind()
		}
		if w.when == "block" { // or the senders would never end
			must(t, os.Remove(gate))
		}
	}, func() *collector { return startCollector(t, w.s) })
	if w.when != "block" {
		must(t, os.Remove(gate))
	}
	w.given = append(w.given, sent...)
	w.sent = append(w.sent, sent)
	c := startCollector(t, w.s)
	idle := func() bool {
		a := c.account()
		return a["counting"] == 0 && a["output0.behind"] == 0 && a["output1.behind"] == 0
	}
	eventually(t, "the outputs have what they were left", idle)
	l := c.lane() // and the next ones, which nothing may be missing of
	var names []string
	for i := range 50 {
		name := fmt.Sprintf("q%d-%d", phase, i)
		names = append(names, name)
		id := newID()
		l.send(packed(tag, id, named(name).append(nil)), id)
	}
	w.sent = append(w.sent, names)
	eventually(t, "the outputs have all", idle)
	c.stop()
}

// load has two senders send under a tag while kill runs, and until the collector of last has acked
// all. It returns what they sent.
func (w *lagging) load(tag, name string, kill func(), last func() *collector) (sent []string) {
	t := w.t
	ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Minute, errors.New("the kill test takes too long"))
	stop := make(chan struct{})
	senders := make([]*sender, 2)
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	seed := w.r.Uint64()
	addr := strings.TrimPrefix(w.s.listen[0], "forward://")
	for i := range senders {
		senders[i] = &sender{
			name: fmt.Sprintf("%s.%d", name, i), addr: addr, tag: tag, pad: 4000,
			rand: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		wg.Go(func() {
			if err := senders[i].run(ctx, stop); err != nil {
				t.Error(err)
			}
		})
	}
	kill()
	c := last()
	close(stop)
	wg.Wait()
	c.kill()
	c.forget()
	w.kills++
	for _, s := range senders {
		sent = append(sent, s.sent...)
	}
	return sent
}

var slowLine = regexp.MustCompile(`(?m)^slow=\S+ +\S+ +(\d+) `)

// behind asks the journal of a dead collector how many events wait for the output.
func (w *lagging) behind() int {
	w.t.Helper()
	text, err := exec.Command(lean.build(w.t), "journal", "ls", w.s.data).CombinedOutput()
	if err != nil {
		w.t.Fatalf("journal ls: %v\n%s", err, text)
	}
	m := slowLine.FindSubmatch(text)
	if m == nil {
		w.t.Fatalf("journal ls does not list the output:\n%s", text)
	}
	n, err := strconv.Atoi(string(m[1]))
	must(w.t, err)
	return n
}

// deadLetters counts the events that are dead letters, by name.
func (w *lagging) deadLetters() map[string]int {
	w.t.Helper()
	count := map[string]int{}
	if _, err := os.Stat(filepath.Join(w.s.data, "letters")); err != nil {
		if w.when == "dead_letter" {
			w.t.Error(err)
		}
		return count
	}
	cmd := exec.Command(lean.build(w.t), "journal", "cat", "--letters", w.s.data)
	text, err := cmd.Output()
	must(w.t, err)
	for line := range strings.Lines(string(text)) {
		var l struct {
			Output string
			Event  struct{ Name string }
		}
		must(w.t, json.Unmarshal([]byte(line), &l))
		if l.Output != "slow" {
			w.t.Fatalf("a letter of %q", l.Output)
		}
		count[l.Event.Name]++
	}
	return count
}
