// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestSend pipes lines into "spillway send" while the collector is killed and started again under
// it.
func TestSend(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	s.Listen = []string{"forward://" + needs.Address()}
	c := rig.StartCollector(t, s)
	r := rig.Random(t)

	const count = 100_000
	cmd := exec.Command(rig.Checked.Build(t), "send", "--to", s.Listen[0], "--tag", "sent")
	stdin, err := cmd.StdinPipe()
	rig.Must(t, err)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	rig.Must(t, cmd.Start())
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	written := make(chan error, 1)
	go func() {
		var failed error
		for i := range count {
			text := fmt.Sprintf("{\"name\":\"line-%d\",\"n\":%d}\n", i, i)
			if i%2 == 1 {
				text = fmt.Sprintf("line-%d\n", i)
			}
			if _, err := stdin.Write([]byte(text)); err != nil {
				failed = err
				break
			}
			if i%10_000 == 0 { // not all at once, so that there are several chunks
				<-time.After(20 * time.Millisecond)
			}
		}
		written <- errors.Join(failed, stdin.Close())
	}()
	for range 3 {
		rig.Pause(c, r, 100*time.Millisecond)
		c.Kill()
		c = rig.StartCollector(t, s)
	}
	rig.Must(t, <-written)
	if err := <-ended; err != nil {
		t.Fatalf("send: %v\n%s", err, stderr.String())
	}
	if got, want := stdout.String(), fmt.Sprintf("%d acked\n", count); got != want {
		t.Errorf("send says %q, want %q", got, want)
	}
	rig.WaitLines(t, out, count)
	c.Stop()
	have := map[string]int{}
	for _, l := range rig.ReadLines(t, out) {
		name := l.Name()
		if text, ok := l.Record["message"].(string); ok {
			name = text
		}
		have[name]++
		if l.Tag != "sent" {
			t.Fatalf("tag %q", l.Tag)
		}
	}
	for i := range count {
		if n := have[fmt.Sprint("line-", i)]; n != 1 {
			t.Fatalf("line %d is there %d times", i, n)
		}
	}

	// Nobody listens any more.
	cmd = exec.Command(rig.Checked.Build(t), "send", "--to", s.Listen[0], "--timeout", "2s")
	cmd.Stdin = strings.NewReader("one\ntwo\nthree\n")
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(text), "0 acked") ||
		!strings.Contains(string(text), "3 lines not acked") {
		t.Errorf("send without a server: %v\n%s", err, text)
	}
}

// TestSendWaits: with nothing listening send says so at once, goes on trying, and says when it is
// connected.
func TestSendWaits(t *testing.T) {
	t.Parallel()
	s, out := rig.NewSetup(t)
	s.Listen = []string{fmt.Sprintf("forward://127.0.0.1:%d", needs.Port("127.0.0.1"))}
	cmd := exec.Command(rig.Checked.Build(t), "send", "--to", s.Listen[0], "--tag", "sent", "--timeout", "5m")
	cmd.Stdin = strings.NewReader("one\ntwo\n")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	rig.Must(t, err)
	rig.Must(t, cmd.Start())
	said := rig.NewLogBook()
	ended := make(chan error, 1)
	go func() {
		said.Follow(stderr)
		ended <- cmd.Wait()
	}()
	defer func() { _ = cmd.Process.Kill() }() // it may have ended
	rig.Eventually(t, "send says that it cannot connect", func() bool {
		return said.Find("spillway: "+s.Listen[0]+": connection refused; trying again for 5m0s") != ""
	})
	c := rig.StartCollector(t, s)
	if err := <-ended; err != nil || stdout.String() != "2 acked\n" {
		t.Errorf("%v, %q\n%s", err, &stdout, said)
	}
	if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); !strings.Contains(lines[len(lines)-1],
		": connected after ") {
		t.Errorf("send said\n%s", said)
	}
	c.Stop()
	if n := len(rig.ReadLines(t, out)); n != 2 {
		t.Errorf("%d lines, want 2", n)
	}
}
