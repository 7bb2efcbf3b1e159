// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestDescriptors: connections leave outputs and journal the files that they need, and the longest
// idle one goes first. A new client is served.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	const peers, outputs, limit = 400, 20, 120
	s, out := newSetup(t)
	s.files = limit
	s.args = append(s.args, "--journal-size", "64MiB")
	c := startCollector(t, s)
	idle := make([]net.Conn, peers)
	for i := range idle {
		idle[i] = c.dialFrom("127.0.0.1")
	}
	c.says("bad input", `kind="too many connections"`, "peer=127.0.0.1:")

	good := c.lane()
	for i := range outputs {
		id := newID()
		good.send(packed(fmt.Sprint("file-", i), id, named(fmt.Sprint("event-", i)).append(nil)), id)
	}
	waitLines(t, out, outputs)
	made, err := filepath.Glob(filepath.Join(out, "file-*.jsonl"))
	must(t, err)
	if len(made) != outputs {
		t.Errorf("%d of %d files were made", len(made), outputs)
	}

	// Half of the limit may be connections. The youngest of them are open, the oldest are closed.
	last := &lane{t: t, conn: idle[peers-1], acks: bufio.NewReader(idle[peers-1])}
	id := newID()
	last.send(packed("last", id, named("last").append(nil)), id)
	for i := range peers - limit {
		must(t, idle[i].SetReadDeadline(time.Now().Add(patience)))
		if n, err := idle[i].Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("idle connection %d: %d bytes, %v", i, n, err)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("idle connection %d is open", i)
		}
	}
	waitLines(t, out, outputs+1)
	c.stop()
}
