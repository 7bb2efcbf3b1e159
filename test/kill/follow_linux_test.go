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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestFollowKill has many pipelines, app | spillway send --follow, whose second half is killed at
// random moments and started again on the same pipe, while the collector is killed, too. So each
// line that was written has to arrive: what a killed process had read is its successor's, what it
// had not is still in the pipe, and a line may be torn between the two. Each is in the output once,
// those of a pipeline in their order.
func TestFollowKill(t *testing.T) {
	t.Parallel()
	pipelines, rounds := 4, needs.Rounds(t, "SPILLWAY_KILLS", 4, 8)
	if needs.Long() {
		pipelines = 20
	}
	s, out := rig.NewSetup(t)
	addr := needs.Address()
	dir, err := os.MkdirTemp("", "spw") // a socket's path must be short
	rig.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.Listen = []string{"forward://" + addr, "forward+unix://" + filepath.Join(dir, "s")}
	c := rig.StartCollector(t, s)
	h := rig.NewHome(t)
	r := rig.Random(t)
	var all sync.WaitGroup
	wrote := make([]int, pipelines)
	for i := range pipelines {
		p := &pipeline{
			t: t, name: fmt.Sprint("p", i), to: s.Listen[i/2%2], home: h,
			r: rand.New(rand.NewPCG(r.Uint64(), 0)),
		}
		if i%2 == 1 {
			p.dir = filepath.Join(filepath.Dir(h.Dir), p.name) // newHome removes that
		}
		all.Go(func() { wrote[i] = p.run(rounds) })
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	kills := 0
	for done := false; !done; {
		select {
		case <-over:
			done = true
		case <-time.After(time.Duration(1000+r.IntN(1000)) * time.Millisecond):
			c.Kill()
			c = rig.StartCollector(t, s)
			kills++
		}
	}
	total := 0
	for _, n := range wrote {
		total += n
	}
	if t.Failed() {
		return
	}
	rig.WaitLines(t, out, total)
	c.Stop()
	got := rig.ReadLines(t, out)
	rig.WantOrder(t, got)
	have := rig.Names(got)
	for i, n := range wrote {
		for k := range n {
			if name := fmt.Sprintf("p%d-%d", i, k); have[name] != 1 {
				t.Fatalf("%s is there %d times", name, have[name])
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(h.Shm, "spillway-*", "*"))
	rig.Must(t, err)
	for _, path := range left {
		if !strings.HasSuffix(path, ".tmp") { // which a kill left behind that came as its ring was made
			t.Errorf("left: %s", path)
		}
	}
	rig.Figure(t, "%d pipelines, %d lines, %d kills of each send, %d of the collector", pipelines, total, rounds, kills)
}

// A pipeline is an application that writes lines, and a command that is killed while it sends them.
type pipeline struct {
	t              *testing.T
	name, to, dir  string
	home           *rig.Home
	r              *rand.Rand
	stdout, stderr bytes.Buffer // of the last command
	written        atomic.Int64 // bursts
}

func (p *pipeline) start(stdin *os.File) *exec.Cmd {
	args := []string{
		"send", "--follow", "--to", p.to, "--name", p.name, "--shm", p.home.Shm, "--tag", p.name,
		"--timeout", "5m",
	}
	if p.dir != "" {
		args = append(args, "--dir", p.dir)
	}
	// Twenty at once that start with the race detector are killed before they read.
	cmd := exec.Command(rig.Lean.Build(p.t), args...)
	p.stdout.Reset()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &p.stdout, &p.stderr
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return nil
	}
	return cmd
}

// run returns how many lines were written.
func (p *pipeline) run(rounds int) (wrote int) {
	in, app, err := os.Pipe()
	if err != nil {
		p.t.Error(err)
		return 0
	}
	defer in.Close()
	enough, ended := make(chan struct{}), make(chan int)
	seed := p.r.Uint64()
	go func() { ended <- p.write(app, rand.New(rand.NewPCG(seed, 1)), enough) }()
	for round := range rounds {
		before := p.written.Load()
		cmd := p.start(in)
		if cmd == nil {
			break
		}
		most := 200 // milliseconds, of which the start takes a part
		if round%2 == 1 {
			most = 20 // once it reads
			for until := time.Now().Add(time.Minute); p.written.Load() == before && time.Now().Before(until); {
				<-time.After(time.Millisecond)
			}
		}
		<-time.After(time.Duration(p.r.IntN(most)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}
	close(enough)
	cmd := p.start(in)
	wrote = <-ended
	if cmd == nil {
		return wrote
	}
	if err := cmd.Wait(); err != nil || !strings.HasSuffix(p.stdout.String(), " acked\n") {
		p.t.Errorf("%s: %v, %s\n%s", p.name, err, &p.stdout, rig.Tail(p.stderr.String(), 4000))
	}
	return wrote
}

// write writes lines of all lengths until there are enough, in bursts, and closes the pipe. The
// last one has no newline.
func (p *pipeline) write(app *os.File, r *rand.Rand, enough chan struct{}) (n int) {
	defer app.Close()
	pad := strings.Repeat("p", 10_000)
	for {
		var b bytes.Buffer
		for range 1 + r.IntN(2000) {
			fmt.Fprintf(&b, "{\"name\":\"%s-%d\",\"pad\":%q}\n", p.name, n, pad[:r.IntN(1+r.IntN(200))])
			n++
			if r.IntN(50) == 0 {
				b.WriteString("\r\n\n")
			}
		}
		if r.IntN(10) == 0 {
			fmt.Fprintf(&b, "{\"name\":\"%s-%d\",\"pad\":%q}\n", p.name, n, pad)
			n++
		}
		if _, err := app.Write(b.Bytes()); err != nil {
			p.t.Error(err)
			return n
		}
		p.written.Add(1)
		select {
		case <-enough:
			fmt.Fprintf(app, "{\"name\":\"%s-%d\"}", p.name, n)
			return n + 1
		case <-time.After(time.Duration(r.IntN(3)) * time.Millisecond):
		}
	}
}
