// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
	"github.com/spillwaylog/spillway/test/internal/rig"
)

// TestIdleConnections holds 10,000 connections open: the bar is 100 MB resident, before and after
// one message on each.
func TestIdleConnections(t *testing.T) {
	const connections, bar = 10_000, 100 << 20
	var limit syscall.Rlimit
	rig.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	needs.Have(t, limit.Max >= connections+200, "10,000 connections need as many open files; the limit is %d",
		limit.Max)

	s, out := rig.NewSetup(t)
	s.Bin = rig.Lean
	c := rig.StartCollector(t, s)
	empty := rig.Resident(t, c)
	conns := make([]net.Conn, connections)
	for i := range conns {
		conns[i] = c.DialFrom(fmt.Sprintf("127.0.2.%d", 1+i%200))
	}
	first := c.Lane()
	id := rig.NewID()
	first.Send(rig.Packed("idle", id, rig.Named("alive").Append(nil)), id) // all before it are accepted
	idle := rig.Resident(t, c)
	message := rig.Packed("idle", "", rig.Named("one each").Append(nil))
	for _, conn := range conns {
		_, err := conn.Write(message)
		rig.Must(t, err)
	}
	rig.WaitLines(t, out, connections+1)
	after := rig.Resident(t, c)
	rig.Figure(t, "resident memory: %.1f MB alone, %.1f MB with %d idle connections, %.1f MB after one message on each",
		float64(empty)/1e6, float64(idle)/1e6, connections, float64(after)/1e6)
	if idle > bar {
		t.Errorf("%d bytes resident with %d idle connections, want at most %d", idle, connections, bar)
	}
}
