// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestDescriptors: connections leave outputs and journal the files that they need, and the longest
// idle one goes first. A new client is served.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	const peers, outputs, limit = 400, 20, 120
	s, out := rig.NewSetup(t)
	s.Files = limit
	s.Args = append(s.Args, "--journal-size", "64MiB")
	c := rig.StartCollector(t, s)
	idle := make([]net.Conn, peers)
	for i := range idle {
		idle[i] = c.DialFrom("127.0.0.1")
	}
	c.Says("bad input", `kind="too many connections"`, "peer=127.0.0.1:")

	good := c.Lane()
	for i := range outputs {
		id := rig.NewID()
		good.Send(rig.Packed(fmt.Sprint("file-", i), id, rig.Named(fmt.Sprint("event-", i)).Append(nil)), id)
	}
	rig.WaitLines(t, out, outputs)
	made, err := filepath.Glob(filepath.Join(out, "file-*.jsonl"))
	rig.Must(t, err)
	if len(made) != outputs {
		t.Errorf("%d of %d files were made", len(made), outputs)
	}

	// Half of the limit may be connections. The youngest of them are open, the oldest are closed.
	last := &rig.Lane{T: t, Conn: idle[peers-1], Acks: bufio.NewReader(idle[peers-1])}
	id := rig.NewID()
	last.Send(rig.Packed("last", id, rig.Named("last").Append(nil)), id)
	for i := range peers - limit {
		rig.Must(t, idle[i].SetReadDeadline(time.Now().Add(rig.Patience)))
		if n, err := idle[i].Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("idle connection %d: %d bytes, %v", i, n, err)
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("idle connection %d is open", i)
		}
	}
	rig.WaitLines(t, out, outputs+1)
	c.Stop()
}
