// SPDX-License-Identifier: Apache-2.0

package logger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/spillwaylog/spillway"
	"github.com/spillwaylog/spillway/forward"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestLoggerRefusedEvent: a thousand good events of a logger and one that the server refuses, which
// ends the connection each time. The thousand arrive, the one is a dead letter in Dir, and a replay
// delivers it later.
func TestLoggerRefusedEvent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stored := map[string]int{}
	seen := map[string]bool{} // ids: a chunk whose ack was lost comes again
	server := &forward.Server{Handler: forward.HandlerFunc(func(_ context.Context, c *forward.Chunk) error {
		if bytes.Contains(c.Entries, []byte("m-poison")) {
			return errors.New("not liked")
		}
		mu.Lock()
		defer mu.Unlock()
		if !seen[string(c.ID)] {
			seen[string(c.ID)] = true
			stored[c.Tag] += c.Events
		}
		return nil
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	rig.Must(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		_ = server.Close()
		<-served
	}()

	h := rig.NewHome(t)
	l := h.Open(fmt.Sprintf("forward://%v?ack_timeout=1s&min_backoff=50ms&max_backoff=1s", listener.Addr()),
		spillway.Options{Dir: h.Dir})
	const tags, each = 10, 100
	for i := range tags * each {
		if i == tags*each/2 {
			rig.Must(t, l.Post("bad", map[string]string{"name": "m-poison"}))
		}
		rig.Must(t, l.Post(fmt.Sprint("good.", i%tags), map[string]int{"n": i}))
	}
	more := 0
	rig.Eventually(t, "the one is a dead letter", func() bool {
		rig.Must(t, l.Post("later", map[string]int{"n": more})) // whether others are acked tells it from an outage
		more++
		return l.Stats().DeadLettered == 1
	})
	rig.Must(t, l.Close(t.Context()))
	if s := l.Stats(); s.Accepted != s.Delivered+s.DeadLettered || s.Delivered != uint64(tags*each+more) {
		t.Errorf("%+v", s)
	}
	mu.Lock()
	for i := range tags {
		if n := stored[fmt.Sprint("good.", i)]; n != each {
			t.Errorf("good.%d: %d events", i, n)
		}
	}
	if stored["later"] != more || stored["bad"] != 0 {
		t.Errorf("%d later ones of %d, %d bad ones", stored["later"], more, stored["bad"])
	}
	mu.Unlock()
	if !h.Said("refuses 1 events of bad", "dead letters") {
		h.Tell()
		t.Error("nobody was told")
	}

	last, out := rig.NewSetup(t)
	end := rig.StartCollector(t, last)
	bin := rig.Lean.Build(t)
	list, err := exec.Command(bin, "journal", "ls", h.Dir).CombinedOutput()
	if err != nil || !strings.Contains(string(list), listener.Addr().String()) ||
		!strings.Contains(string(list), "not acked") {
		t.Errorf("%v: %s", err, list)
	}
	text, err := exec.Command(bin, "journal", "cat", "--letters", h.Dir).CombinedOutput()
	if err != nil || !strings.Contains(string(text), "m-poison") {
		t.Errorf("%v: %s", err, text)
	}
	said, err := exec.Command(bin, "replay", h.Dir, "--to", "forward://"+end.Addr).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "acked 1 letter, 1 event") {
		t.Errorf("%v: %s", err, said)
	}
	rig.WaitLines(t, out, 1)
	end.Stop()
	rig.WantNames(t, rig.ReadLines(t, out), "m-poison")
}
