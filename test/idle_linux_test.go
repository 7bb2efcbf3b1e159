// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/spillwaylog/spillway/internal/needs"
)

// TestIdleConnections holds 10,000 connections open: the bar is 100 MB resident, before and after
// one message on each.
func TestIdleConnections(t *testing.T) {
	const connections, bar = 10_000, 100 << 20
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	needs.Have(t, limit.Max >= connections+200, "10,000 connections need as many open files; the limit is %d",
		limit.Max)

	s, out := newSetup(t)
	s.bin = lean
	c := startCollector(t, s)
	empty := resident(t, c)
	conns := make([]net.Conn, connections)
	for i := range conns {
		conns[i] = c.dialFrom(fmt.Sprintf("127.0.2.%d", 1+i%200))
	}
	first := c.lane()
	id := newID()
	first.send(packed("idle", id, named("alive").append(nil)), id) // all before it are accepted
	idle := resident(t, c)
	message := packed("idle", "", named("one each").append(nil))
	for _, conn := range conns {
		_, err := conn.Write(message)
		must(t, err)
	}
	waitLines(t, out, connections+1)
	after := resident(t, c)
	figure(t, "resident memory: %.1f MB alone, %.1f MB with %d idle connections, %.1f MB after one message on each",
		float64(empty)/1e6, float64(idle)/1e6, connections, float64(after)/1e6)
	if idle > bar {
		t.Errorf("%d bytes resident with %d idle connections, want at most %d", idle, connections, bar)
	}
}
